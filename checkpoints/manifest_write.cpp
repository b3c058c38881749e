// manifest -> text: JSON, one line per entry, the head first, the checksum of all of it last.
#include <nlohmann/json.hpp>

#include "crc32c.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {
namespace {

using json = nlohmann::ordered_json;

std::string dump(const json& what) {
    return what.dump(-1, ' ', false, json::error_handler_t::replace);
}

json to_json(const head& what) {
    return {{"libzero_checkpoint", format_version},
            {"uuid", what.uuid},
            {"sequence", what.sequence},
            {"tag", what.tag},
            {"step", what.step},
            {"time", what.time},
            {"ranks", what.ranks},
            {"model_ranks", what.model_ranks},
            {"stage", what.stage},
            {"bytes", what.bytes}};
}

json to_json(const run_state& what) {
    return {{"step", what.step},
            {"skipped", what.skipped},
            {"lr", what.lr},
            {"scale", what.scale},
            {"hysteresis", what.hysteresis},
            {"iteration", what.iteration},
            {"last_overflow", what.last_overflow},
            {"stage", what.stage},
            {"nodes", what.nodes},
            {"optimizer", what.optimizer},
            {"schedule", what.schedule},
            {"config", what.config}};
}

json to_json(const file_entry& what) {
    return {{"name", what.name},         {"bytes", what.bytes},         {"frame_crc32c", crc32c::text(what.frame)},
            {"identity", what.identity}, {"integrity", what.integrity}, {"blocks", what.blocks}};
}

json to_json(const extent& what) {
    return {{"file", what.file},   {"dataset", what.dataset}, {"dtype", name(what.type)}, {"first", what.first},
            {"count", what.count}, {"offset", what.offset},   {"block", what.block}};
}

json to_json(const tensor_entry& what) {
    json vectors = json::array();
    for (const vector_entry& vector : what.vectors) {
        json pieces = json::array();
        for (const piece& part : vector.pieces) pieces.push_back({part.extent, part.offset, part.first, part.count});
        vectors.push_back({{"state", vector.state}, {"dtype", name(vector.type)}, {"pieces", std::move(pieces)}});
    }
    return {{"name", what.name},
            {"dtype", name(what.type)},
            {"dims", what.dims},
            {"group", what.group},
            {"model", what.model},
            {"frozen", what.frozen},
            {"vectors", std::move(vectors)}};
}

json to_json(const attachment_entry& what) {
    return {{"name", what.name},   {"dtype", name(what.type)}, {"dims", what.dims},    {"per_rank", what.per_rank},
            {"model", what.model}, {"rank", what.rank},        {"extent", what.extent}};
}

template <typename Entry>
void add_list(std::string& text, const char* key, const std::vector<Entry>& entries) {
    text += formatted("\"{}\":[", key);
    const char* between = "\n";
    for (const Entry& entry : entries) {
        text += between + dump(to_json(entry));
        between = ",\n";
    }
    text += "],\n";
}

}  // namespace

std::string to_text(const manifest& what) {
    const std::string first = dump(to_json(what.head));
    std::string text = formatted("{{\"head\":{},\"head_crc32c\":\"{}\",\n", first, crc32c::text(crc32c::of(first)));
    text += "\"run\":" + dump(to_json(what.run)) + ",\n";
    text += formatted("\"index\":{{\"name\":\"{}\",\"bytes\":{},\"crc32c\":\"{}\"}},\n", index_name, what.index_bytes,
                        crc32c::text(what.index_sum));
    add_list(text, "files", what.files);
    add_list(text, "extents", what.extents);
    add_list(text, "tensors", what.tensors);
    add_list(text, "attachments", what.attachments);
    text += "\"crc32c\":\"";
    const std::uint32_t sum = crc32c::of(text);
    return text + crc32c::text(sum) + "\"}\n";
}

std::string identity_text(const manifest& what, int file) {
    std::string text = formatted("libzero {} {:05}/{:05}", what.head.uuid, file, what.files.size());
    text.resize(static_cast<std::size_t>(identity_bytes), ' ');
    return text;
}

}  // namespace zero::checkpoint
