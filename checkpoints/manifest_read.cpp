// text -> manifest: nothing in it is believed. Sums first, then JSON (no duplicate keys, no depth), then types and
// ranges.
#include <nlohmann/json.hpp>
#include <set>

#include "crc32c.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {
namespace {

using json = nlohmann::json;
constexpr int most_depth = 12;

// Takes values out of one JSON object and says which file and key is wrong.
class object {
public:
    object(const json& from, const std::string& where) : from_(from), where_(where) {
        if (!from.is_object()) damaged("{} is damaged: an entry is not an object", where);
    }
    const json& at(const char* key) const {
        const auto found = from_.find(key);
        if (found == from_.end()) damaged("{} is damaged: \"{}\" is missing", where_, key);
        return *found;
    }
    std::int64_t integer(const char* key, std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX) const {
        return integer(at(key), key, least, most);
    }
    std::int64_t integer(const json& value, const char* key, std::int64_t least, std::int64_t most) const {
        const bool fits =
            value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX : value.is_number_integer();
        if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
            damaged("{} is damaged: \"{}\" is not a number in its range", where_, key);
        return value.get<std::int64_t>();
    }
    int small(const char* key, int least, int most = INT32_MAX) const {
        return static_cast<int>(integer(key, least, most));
    }
    double real(const char* key) const {
        const json& value = at(key);
        if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();  // what JSON makes of inf and nan
        if (!value.is_number()) damaged("{} is damaged: \"{}\" is not a number", where_, key);
        return value.get<double>();
    }
    bool boolean(const char* key) const {
        if (!at(key).is_boolean()) damaged("{} is damaged: \"{}\" is neither true nor false", where_, key);
        return at(key).get<bool>();
    }
    std::string text(const char* key) const {
        if (!at(key).is_string()) damaged("{} is damaged: \"{}\" is not a text", where_, key);
        return at(key).get<std::string>();
    }
    std::uint32_t sum(const char* key) const {
        const std::string digits = text(key);
        if (digits.size() != 8 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
            damaged("{} is damaged: \"{}\" is not a checksum", where_, key);
        return static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16));
    }
    dtype type(const char* key) const {
        const std::optional<dtype> found = dtype_from(text(key));
        if (!found) damaged("{} is damaged: \"{}\" is no dtype", where_, text(key));
        return *found;
    }
    const json& list(const char* key) const {
        if (!at(key).is_array()) damaged("{} is damaged: \"{}\" is not a list", where_, key);
        return at(key);
    }
    std::vector<std::int64_t> dims(const char* key) const {
        std::vector<std::int64_t> result;
        for (const json& dim : list(key)) result.push_back(integer(dim, key, 0, INT64_MAX));
        return result;
    }
    const std::string& where() const noexcept { return where_; }

private:
    const json& from_;
    const std::string& where_;
};

head read_head(const object& from) {
    const std::int64_t version = from.integer("libzero_checkpoint");
    if (version != format_version)
        fail(code::checkpoint, "{} has format {}; this library reads format {}", from.where(), version, format_version);
    head result;
    result.uuid = from.text("uuid");
    result.tag = from.text("tag");
    result.time = from.text("time");
    result.sequence = from.integer("sequence", 0);
    result.step = from.integer("step", 0);
    result.bytes = from.integer("bytes", 0);
    result.ranks = from.small("ranks", 1);
    result.model_ranks = from.small("model_ranks", 1);
    result.stage = from.small("stage", 0, 3);
    return result;
}

run_state read_run(const object& from) {
    run_state result;
    result.step = from.integer("step", 0);
    result.skipped = from.integer("skipped", 0);
    result.lr = from.real("lr");
    result.scale = from.real("scale");
    result.hysteresis = from.integer("hysteresis");
    result.iteration = from.integer("iteration");
    result.last_overflow = from.integer("last_overflow");
    result.stage = from.small("stage", 0, 3);
    result.nodes = from.small("nodes", 1);
    result.optimizer = from.text("optimizer");
    result.schedule = from.text("schedule");
    result.config = from.text("config");
    return result;
}

file_entry read_file(const object& from) {
    file_entry result;
    result.name = from.text("name");
    result.bytes = from.integer("bytes", 0);
    result.frame = from.sum("frame_crc32c");
    result.identity = from.integer("identity", 0);
    result.integrity = from.integer("integrity", 0);
    result.blocks = from.integer("blocks", 0);
    return result;
}

extent read_extent(const object& from) {
    extent result;
    result.file = from.small("file", 0);
    result.dataset = from.text("dataset");
    result.type = from.type("dtype");
    result.first = from.integer("first", 0);
    result.count = from.integer("count", 1);
    result.offset = from.integer("offset", 0);
    result.block = from.integer("block", 0);
    return result;
}

piece read_piece(const object& from, const json& what) {
    if (!what.is_array() || what.size() != 4) damaged("{} is damaged: a piece is not four numbers", from.where());
    piece result;
    result.extent = static_cast<int>(from.integer(what[0], "pieces", 0, INT32_MAX));
    result.offset = from.integer(what[1], "pieces", 0, INT64_MAX);
    result.first = from.integer(what[2], "pieces", 0, INT64_MAX);
    result.count = from.integer(what[3], "pieces", 1, INT64_MAX);
    return result;
}

tensor_entry read_tensor(const object& from) {
    tensor_entry result;
    result.name = from.text("name");
    result.type = from.type("dtype");
    result.dims = from.dims("dims");
    result.count = product(result.dims, from.where());
    result.group = from.small("group", 0);
    result.model = from.small("model", 0);
    result.frozen = from.boolean("frozen");
    for (const json& entry : from.list("vectors")) {
        const object vector(entry, from.where());
        vector_entry made;
        made.state = vector.text("state");
        made.type = vector.type("dtype");
        for (const json& part : vector.list("pieces")) made.pieces.push_back(read_piece(vector, part));
        result.vectors.push_back(std::move(made));
    }
    return result;
}

attachment_entry read_attachment(const object& from) {
    attachment_entry result;
    result.name = from.text("name");
    result.type = from.type("dtype");
    result.dims = from.dims("dims");
    result.count = product(result.dims, from.where());
    result.per_rank = from.boolean("per_rank");
    result.model = from.small("model", 0);
    result.rank = from.small("rank", 0);
    result.extent = from.small("extent", -1);
    return result;
}

template <typename Read>
auto read_list(const object& from, const char* key, Read read) {
    std::vector<decltype(read(from))> result;
    for (const json& entry : from.list(key)) result.push_back(read(object(entry, from.where())));
    return result;
}

json parse(std::string_view text, const std::string& where) {
    std::vector<std::set<std::string>> open;  // keys of the objects that we are in
    const auto watch = [&](int depth, json::parse_event_t event, json& value) {
        if (depth > most_depth) damaged("{} is damaged: it is nested too deeply", where);
        if (event == json::parse_event_t::object_start) open.emplace_back();
        if (event == json::parse_event_t::object_end) open.pop_back();
        if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
            damaged("{} is damaged: the key \"{}\" stands twice in one object", where, value.get<std::string>());
        return true;
    };
    try {
        return json::parse(text, watch);
    } catch (const json::exception& problem) {
        damaged("{} is damaged: it is not JSON ({})", where, problem.what());
    }
}

}  // namespace

std::optional<dtype> dtype_from(std::string_view text) noexcept {
    for (const dtype type :
         {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i32, dtype::i64, dtype::u8, dtype::c64, dtype::c128})
        if (text == name(type)) return type;
    return std::nullopt;
}

head head_from_text(std::string_view start, const std::string& where) {
    constexpr std::string_view opening = "{\"head\":", middle = ",\"head_crc32c\":\"", closing = "\",\n";
    const std::string_view line = start.substr(0, start.find('\n') + 1);
    const std::size_t tail = middle.size() + 8 + closing.size();
    if (!line.starts_with(opening) || !line.ends_with(closing) || line.size() < opening.size() + tail)
        damaged("{} is damaged: its first line is not the head of a checkpoint", where);
    const std::string_view body = line.substr(opening.size(), line.size() - opening.size() - tail);
    const std::string_view sum = line.substr(line.size() - closing.size() - 8, 8);
    if (line.substr(opening.size() + body.size(), middle.size()) != middle || crc32c::text(crc32c::of(body)) != sum)
        damaged("{} is damaged: the checksum of its first line is wrong", where);
    const json parsed = parse(body, where);
    return read_head(object(parsed, where));
}

manifest from_json(std::string_view text, const std::string& where) {
    const json parsed = parse(text, where);
    const object all(parsed, where);
    manifest result;
    result.head = read_head(object(all.at("head"), where));
    result.run = read_run(object(all.at("run"), where));
    const object index(all.at("index"), where);
    result.index_bytes = index.integer("bytes", 0);
    result.index_sum = index.sum("crc32c");
    result.files = read_list(all, "files", read_file);
    result.extents = read_list(all, "extents", read_extent);
    result.tensors = read_list(all, "tensors", read_tensor);
    result.attachments = read_list(all, "attachments", read_attachment);
    check(result, where);
    return result;
}

manifest from_text(std::string_view text, const std::string& where) {
    constexpr std::string_view opening = "\"crc32c\":\"", closing = "\"}\n";
    const std::size_t tail = 8 + closing.size();
    if (text.size() < tail + opening.size() || !text.ends_with(closing) ||
        text.substr(text.size() - tail - opening.size(), opening.size()) != opening)
        damaged("{} is damaged: its end is missing", where);
    const std::string_view summed = text.substr(0, text.size() - tail);
    if (crc32c::text(crc32c::of(summed)) != text.substr(text.size() - tail, 8))
        damaged("{} is damaged: its checksum is wrong", where);
    head_from_text(text, where);
    return from_json(text, where);
}

}  // namespace zero::checkpoint
