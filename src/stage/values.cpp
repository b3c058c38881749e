// Publish, spread and collect. See values.hpp.
#include "stage/values.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/postponed.hpp"
#include "tensor/vector.hpp"

namespace zero::stage {

namespace {

constexpr std::int64_t chunk_bytes = 4 << 20;  // the most that a non-root rank grows by in spread

// True when every slice of the bucket is at most one stretch of one caller's array: nothing to pack.
bool lands_directly(const partition::layout& space, int bucket) {
    for (int rank = 0; rank < space.ranks().ranks; ++rank)
        if (space.pieces(bucket, space.slice_of(bucket, rank)).size() > 1) return false;
    return true;
}

// Elements of every slice that one all-gather carries.
std::int64_t piece_of_slice(const partition::bucket& b, int ranks, std::int64_t allgather_bucket_size) {
    return std::min(b.slice, std::max(partition::alignment(b.type), allgather_bucket_size / ranks));
}

std::int64_t staged_slice(const partition::bucket& b, int ranks, std::int64_t allgather_bucket_size) {
    return piece_of_slice(b, ranks, std::min(allgather_bucket_size, chunk_bytes / size_of(b.type)));
}

}  // namespace

std::int64_t publish_bytes(const partition::layout& space, std::int64_t allgather_bucket_size) {
    const int ranks = space.ranks().ranks;
    std::int64_t most = 0;
    for (int b = 0; ranks > 1 && b < static_cast<int>(space.buckets().size()); ++b) {
        const auto& bucket = space.buckets()[static_cast<std::size_t>(b)];
        if (bucket.library_owned || !bucket.whole_values || !bucket.trainable || lands_directly(space, b)) continue;
        most = std::max(most, staged_slice(bucket, ranks, allgather_bucket_size) * ranks * size_of(bucket.type));
    }
    return most;
}

values::values(const context& all, storage& memory) : all_(all), memory_(memory) {
    const std::int64_t bytes = publish_bytes(all.space, all.how.allgather_bucket_size);
    if (bytes > 0) staging_ = visible_buffer(all, bytes);
}

// Every rank's part lies, or will lie, at its landing.
void values::gather_into(std::vector<comm::landing> landings, lies how) {
    comm::all_gather_request request;
    request.visible = how == lies::visibly;
    request.once = how == lies::once;
    request.landings = std::move(landings);
    const auto& own = request.landings[static_cast<std::size_t>(all_.ranks.rank())];
    request.own = own.data;
    request.own_bytes = own.bytes;
    all_.ranks.start_all_gather(std::move(request))->finish();
}

// All slices of a bucket, "allgather_bucket_size" elements at a time; `place_of` says where a part of one slice lies here.
template <typename Place>
void values::gather_in_pieces(int bucket, lies how, Place place_of) {
    const auto& b = all_.bucket(bucket);
    const std::int64_t chunk = piece_of_slice(b, all_.ranks.size(), all_.how.allgather_bucket_size);
    for (std::int64_t first = 0; first < b.slice; first += chunk) {
        const std::int64_t count = std::min(chunk, b.slice - first);
        std::vector<comm::landing> landings;
        for (int rank = 0; rank < all_.ranks.size(); ++rank)
            landings.push_back(place_of(partition::range{all_.space.slice_of(bucket, rank).first + first, count}));
        gather_into(std::move(landings), how);
    }
}

void values::gather_vector(int bucket, std::byte* base, dtype type, lies how) {
    if (all_.alone() || all_.bucket(bucket).padded == 0) return;
    const std::int64_t width = size_of(type);
    gather_in_pieces(bucket, how, [&](partition::range part) { return comm::landing{base + part.first * width, part.count * width}; });
}

void values::gather_vector(int bucket, std::byte* base, dtype type) {
    gather_vector(bucket, base, type, base == memory_.gradients(bucket) ? lies::visibly : lies::privately);
}

void values::publish(int bucket) {
    send_out(bucket);
    if (memory_.exists_once(bucket)) all_.ranks.fence();
}

void values::send_out(int bucket) {
    const auto& b = all_.bucket(bucket);
    const bool once = memory_.exists_once(bucket);
    if (all_.alone() || !b.whole_values || b.padded == 0 || (once && all_.space.ranks().nodes == 1)) return;
    if (b.library_owned) return gather_vector(bucket, memory_.values(bucket), b.type, once ? lies::once : lies::privately);
    if (!lands_directly(all_.space, bucket)) return publish_staged(bucket);
    gather_in_pieces(bucket, lies::privately, [&](partition::range part) {
        const auto pieces = all_.space.pieces(bucket, part);
        if (pieces.empty()) return comm::landing{};
        return comm::landing{memory_.value(pieces[0].tensor, pieces[0].first), pieces[0].count * size_of(b.type)};
    });
}

void values::copy_slice(int bucket, partition::range part, std::byte* packed, bool pack) {
    const std::int64_t width = size_of(all_.bucket(bucket).type);
    for (const auto& piece : all_.space.pieces(bucket, part)) {
        std::byte* place = memory_.value(piece.tensor, piece.first);
        std::byte* image = packed + (piece.offset - part.first) * width;
        if (pack) all_.work.copy(image, place, piece.count * width);
        else all_.work.copy(place, image, piece.count * width);
    }
}

// Many small arrays of the caller's share a bucket: packed, gathered and unpacked in chunks of every slice.
void values::publish_staged(int bucket) {
    const auto& b = all_.bucket(bucket);
    const int ranks = all_.ranks.size();
    const std::int64_t width = size_of(b.type), chunk = staged_slice(b, ranks, all_.how.allgather_bucket_size);
    for (std::int64_t first = 0; first < b.slice; first += chunk) {
        const std::int64_t count = std::min(chunk, b.slice - first);
        std::vector<comm::landing> landings;
        for (int rank = 0; rank < ranks; ++rank) landings.push_back({staging_.data() + rank * count * width, count * width});
        const auto part_of = [&](int rank) { return partition::range{all_.space.slice_of(bucket, rank).first + first, count}; };
        copy_slice(bucket, part_of(all_.ranks.rank()), staging_.data() + all_.ranks.rank() * count * width, true);
        gather_into(std::move(landings), lies::visibly);
        for (int rank = 0; rank < ranks; ++rank)
            if (rank != all_.ranks.rank()) copy_slice(bucket, part_of(rank), staging_.data() + rank * count * width, false);
    }
}

// Between values and masters, of which one or both may be offloaded.
void values::convert(int bucket, dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count) {
    if (!memory_.states_offloaded(bucket) && !memory_.values_offloaded(bucket)) return all_.work.convert(to_type, to, from_type, from, count);
    constexpr std::int64_t tile = 1 << 16;
    std::vector<std::byte> in(static_cast<std::size_t>(std::min(tile, count) * size_of(from_type)));
    std::vector<std::byte> out(static_cast<std::size_t>(std::min(tile, count) * size_of(to_type)));
    for (std::int64_t first = 0; first < count; first += tile) {
        const std::int64_t n = std::min(tile, count - first);
        all_.work.copy(in.data(), static_cast<const std::byte*>(from) + first * size_of(from_type), n * size_of(from_type));
        vector::convert(to_type, out.data(), from_type, in.data(), n);
        all_.work.copy(static_cast<std::byte*>(to) + first * size_of(to_type), out.data(), n * size_of(to_type));
    }
}

void values::round_masters(int bucket) {
    if (!memory_.has_master(bucket)) return;
    const auto& b = all_.bucket(bucket);
    const auto part = memory_.writes_share(bucket) ? memory_.written_values(bucket) : memory_.states_part(bucket);
    for (const auto& s : memory_.stretches(bucket, part)) {
        std::byte* to = s.tensor < 0 ? memory_.value_at(bucket, s.offset) : memory_.value(s.tensor, s.first);
        convert(bucket, b.type, to, dtype::f32, memory_.master_at(bucket, s.offset), s.count);
    }
}

void values::refresh_masters(int bucket, partition::range part) {
    if (!memory_.has_master(bucket)) return;
    const auto held = memory_.states_part(bucket);
    const std::int64_t first = std::max(held.first, part.first);
    const std::int64_t end = std::min(held.first + held.count, part.first + part.count);
    if (end <= first || memory_.master_at(bucket, first) == nullptr) return;  // not taken yet while initial values spread
    for (const auto& piece : all_.space.pieces(bucket, {first, end - first}))
        convert(bucket, dtype::f32, memory_.master_at(bucket, piece.offset), all_.bucket(bucket).type,
                memory_.value(piece.tensor, piece.first), piece.count);
}

// Initial values of a bucket that lies in the callers' arrays, whole on every rank: few, large messages.
void values::spread_bucket(int bucket, int root, const buffer& passage) {
    const auto& b = all_.bucket(bucket);
    const std::int64_t width = size_of(b.type), chunk = std::min(b.used, passage.bytes() / width);
    postponed copies;  // the broadcasts are everybody's
    if (root >= 0 && !all_.alone() && b.used > 0) {
        for (std::int64_t first = 0; first < b.used; first += chunk) {
            const partition::range part{first, std::min(chunk, b.used - first)};
            if (all_.ranks.rank() == root) copies.attempt([&] { copy_slice(bucket, part, passage.data(), true); });
            all_.ranks.broadcast(passage.data(), part.count * width, root);
            if (all_.ranks.rank() != root) copies.attempt([&] { copy_slice(bucket, part, passage.data(), false); });
        }
    }
    copies.rethrow();
    refresh_masters(bucket, {0, b.padded});
}

namespace {

// Elements of a tensor that lie in a range of its bucket.
partition::range overlap(std::int64_t seat, std::int64_t count, partition::range part) {
    const std::int64_t first = std::max<std::int64_t>(0, part.first - seat);
    const std::int64_t end = std::min(count, part.first + part.count - seat);
    return {first, std::max<std::int64_t>(0, end - first)};
}

}  // namespace

// Elements `part` of the tensor are held at `held` (all of them on every rank when `whole`). They come from `from` on the
// root, chunk by chunk.
void values::receive(const tensor& t, dtype type, bool whole, partition::range part, std::byte* held, int root, const void* from,
                     const buffer& passage) {
    const std::int64_t width = size_of(type);
    const auto* source = static_cast<const std::byte*>(from);
    const auto take = [&](std::int64_t first, std::int64_t count, const std::byte* image) {  // `image` holds first..first+count-1
        const std::int64_t begin = std::max(first, part.first), end = std::min(first + count, part.first + part.count);
        std::byte* to = held + (begin - part.first) * width;
        if (end > begin) all_.work.copy(to, image + (begin - first) * width, (end - begin) * width);
    };
    const bool giver = root < 0 || all_.ranks.rank() == root;
    postponed copies;  // the broadcasts are everybody's
    if (giver) copies.attempt([&] { take(0, t.count, source); });
    if (root < 0 || all_.alone() || t.count == 0) return copies.rethrow();
    if (whole && all_.work.on_host()) return all_.ranks.broadcast(held, t.count * width, root);
    const std::int64_t chunk = std::min(t.count, passage.bytes() / width);
    for (std::int64_t first = 0; first < t.count; first += chunk) {
        const std::int64_t count = std::min(chunk, t.count - first);
        if (giver) copies.attempt([&] { all_.work.copy(passage.data(), source + first * width, count * width); });
        all_.ranks.broadcast(passage.data(), count * width, root);
        if (!giver) copies.attempt([&] { take(first, count, passage.data()); });
    }
    copies.rethrow();
}

buffer values::passage(int id, const std::string& name, int root) const {
    const auto& t = all_.tensors.at(id);
    const int bucket = all_.space.where(id).bucket;
    const bool whole = name.empty() ? all_.bucket(bucket).whole_values || memory_.exists_once(bucket) : cover_of(bucket, name).count == all_.bucket(bucket).padded;
    if (root < 0 || all_.alone() || (whole && all_.work.on_host())) return {};
    const std::int64_t bytes = t.count * size_of(name.empty() ? t.type : memory_.vector_type(id, name));
    return {all_.book, purpose::communication, std::min(bytes, chunk_bytes)};
}

buffer values::passage_for_all(int root) const {
    if (root < 0 || all_.alone()) return {};
    std::int64_t most = 0;
    for (int b = 0; b < all_.buckets(); ++b) {
        const auto& bucket = all_.bucket(b);
        if (!bucket.library_owned && !memory_.exists_once(b)) most = std::max(most, bucket.used * size_of(bucket.type));
    }
    return {all_.book, purpose::communication, std::min(most, chunk_bytes)};
}

partition::range values::cover_of(int bucket, const std::string& vector) const {
    return vector == "gradient" ? memory_.gradient_part(bucket) : memory_.states_part(bucket);
}

void values::spread(int id, int root, const void* from, const buffer& passage) {
    const auto& t = all_.tensors.at(id);
    const auto& seat = all_.space.where(id);
    // What exists once per node is written once there: by the root and its peers on other nodes, or by each owner.
    const bool once = memory_.exists_once(seat.bucket);
    const auto part = overlap(seat.offset, t.count, once && root < 0 ? memory_.written_values(seat.bucket) : memory_.values_part(seat.bucket));
    std::byte* held = part.count > 0 ? memory_.value(id, part.first) : nullptr;
    if (!once) receive(t, t.type, all_.bucket(seat.bucket).whole_values, part, held, root, from, passage);
    else if (root < 0 || root == all_.ranks.rank()) receive(t, t.type, false, part, held, -1, from, passage);
    if (once && root >= 0 && all_.space.ranks().nodes > 1) {
        std::vector<comm::landing> landings(static_cast<std::size_t>(all_.ranks.size()));
        landings[static_cast<std::size_t>(root)] = {memory_.value(id, 0), t.bytes()};
        gather_into(std::move(landings), lies::once);
    }
    if (once) all_.ranks.fence();
    refresh_masters(seat.bucket, {seat.offset, t.count});
}

void values::spread_vector(int id, const std::string& name, int root, const void* from, const buffer& passage) {
    const auto& t = all_.tensors.at(id);
    const auto& seat = all_.space.where(id);
    const auto cover = cover_of(seat.bucket, name);
    const auto part = overlap(seat.offset, t.count, cover);
    std::byte* held = part.count > 0 ? memory_.vector(id, name, part.first) : nullptr;
    receive(t, memory_.vector_type(id, name), cover.count == all_.bucket(seat.bucket).padded, part, held, root, from, passage);
}

// From a device a piece of the tensor at a time: `to` may be host memory on one rank and a device's on another.
buffer values::passage_up(int id, const std::string& name) const {
    if (all_.work.on_host()) return {};
    const auto& t = all_.tensors.at(id);
    const std::int64_t bytes = t.count * size_of(name.empty() ? t.type : memory_.vector_type(id, name));
    return {all_.book, purpose::communication, 2 * std::min(bytes, chunk_bytes)};
}

void values::collect_in_pieces(int id, const std::string& name, int root, void* to, const buffer& passage) {
    const auto& t = all_.tensors.at(id);
    const std::int64_t width = size_of(name.empty() ? t.type : memory_.vector_type(id, name)), room = passage.bytes() / 2 / width;
    std::byte *aside = passage.data(), *whole = passage.data() + room * width;
    const bool takes = root < 0 || root == all_.ranks.rank();
    postponed copies;  // the gathers are everybody's
    for (std::int64_t first = 0; first < t.count; first += room) {
        const std::int64_t count = std::min(room, t.count - first);
        comm::all_gather_request request;
        request.on_host = true;
        request.root = root;
        for (int rank = 0; rank < all_.ranks.size(); ++rank) {
            const auto held = all_.space.owned(id, rank);
            const auto part = overlap(first, count, held);  // counted from `first`
            request.landings.push_back({takes ? whole + part.first * width : nullptr, part.count * width});
            if (rank != all_.ranks.rank() || part.count == 0) continue;
            const std::byte* from = name.empty() ? memory_.value(id, first + part.first) : memory_.vector(id, name, first + part.first);
            copies.attempt([&] { all_.work.copy(aside, from, part.count * width); });
            request.own = aside;
            request.own_bytes = part.count * width;
        }
        all_.ranks.start_all_gather(std::move(request))->finish();
        if (takes) copies.attempt([&] { all_.work.copy(static_cast<std::byte*>(to) + first * width, whole, count * width); });
    }
    copies.rethrow();
}

void values::collect(int id, const std::string& name, int root, void* to, const buffer& passage) {
    if (!all_.work.on_host()) return collect_in_pieces(id, name, root, to, passage);
    const auto& t = all_.tensors.at(id);
    const dtype type = name.empty() ? t.type : memory_.vector_type(id, name);
    const std::int64_t width = size_of(type);
    const auto own = all_.space.owned(id, all_.ranks.rank());
    auto* base = static_cast<std::byte*>(to);
    comm::all_gather_request request;
    for (int rank = 0; rank < all_.ranks.size(); ++rank) {
        const auto part = all_.space.owned(id, rank);
        request.landings.push_back({base == nullptr ? nullptr : base + part.first * width, part.count * width});
    }
    if (own.count > 0) request.own = name.empty() ? memory_.value(id, own.first) : memory_.vector(id, name, own.first);
    request.own_bytes = own.count * width;
    request.root = root;
    all_.ranks.start_all_gather(std::move(request))->finish();
}

}  // namespace zero::stage
