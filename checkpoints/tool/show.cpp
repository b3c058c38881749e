// zero-ckpt show: the run, the files and the tensors of one checkpoint, from its manifest.
#include <fmt/format.h>

#include "answer.hpp"
#include "checkpoints/verify.hpp"
#include "content.hpp"
#include "progress.hpp"
#include "statistics.hpp"
#include "tensor/registry.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

using checkpoint::manifest;
using json = nlohmann::ordered_json;

std::int64_t bytes_of(const checkpoint::tensor_entry& tensor) {
    std::int64_t bytes = 0;
    for (const checkpoint::vector_entry& vector : tensor.vectors) bytes += tensor.count * size_of(vector.type);
    return bytes;
}

void print_manifest(const manifest& what, const std::vector<statistics>& numbers) {
    json tensors = json::array(), attached = json::array(), files = json::array();
    for (const checkpoint::tensor_entry& one : what.tensors) {
        json vectors = json::object();
        for (const checkpoint::vector_entry& vector : one.vectors) vectors[vector.state] = name(vector.type);
        tensors.push_back({{"name", one.name},
                           {"model", one.model},
                           {"dtype", name(one.type)},
                           {"dims", one.dims},
                           {"group", one.group},
                           {"frozen", one.frozen},
                           {"vectors", vectors},
                           {"bytes", bytes_of(one)}});
        if (numbers.empty()) continue;
        json& found = tensors.back()["statistics"] = json::object();
        for (const auto& [state, of] : numbers[tensors.size() - 1]) {
            if (of.finite == 0)
                found[state] = {{"min", nullptr}, {"max", nullptr}, {"mean", nullptr}, {"not_finite", of.not_finite}};
            else
                found[state] = {{"min", of.least}, {"max", of.most}, {"mean", of.mean()}, {"not_finite", of.not_finite}};
        }
    }
    for (const checkpoint::attachment_entry& one : what.attachments)
        attached.push_back({{"name", one.name},
                            {"model", one.model},
                            {"dtype", name(one.type)},
                            {"dims", one.dims},
                            {"per_rank", one.per_rank},
                            {"rank", one.rank}});
    for (const checkpoint::file_entry& one : what.files) files.push_back({{"name", one.name}, {"bytes", one.bytes}});
    const json all{{"uuid", what.head.uuid},
                   {"tag", what.head.tag},
                   {"sequence", what.head.sequence},
                   {"time", what.head.time},
                   {"step", what.run.step},
                   {"skipped", what.run.skipped},
                   {"lr", what.run.lr},
                   {"loss_scale", what.run.scale},
                   {"ranks", what.head.ranks},
                   {"model_ranks", what.head.model_ranks},
                   {"stage", what.head.stage},
                   {"optimizer", what.run.optimizer},
                   {"schedule", what.run.schedule},
                   {"config", what.run.config},
                   {"bytes", what.head.bytes},
                   {"files", files},
                   {"tensors", tensors},
                   {"attached", attached}};
    print_json(all);
}

// "layer/0/w" under "layer/0/b" repeats nothing: the folders of a name are printed once.
void print_tree(const manifest& what, const std::vector<statistics>& numbers) {
    std::string open;
    std::size_t number = 0;
    for (const checkpoint::tensor_entry& one : what.tensors) {
        const std::string path = shown_name(what, one);
        const std::size_t cut = path.rfind('/');
        const std::string folder = cut == std::string::npos ? "" : path.substr(0, cut + 1);
        if (folder != open && !folder.empty()) fmt::print("  {}\n", folder);
        open = folder;
        std::string states;
        for (const checkpoint::vector_entry& vector : one.vectors)
            if (vector.state != "value") states += (states.empty() ? "" : ", ") + vector.state;
        fmt::print("  {}{:<28} {:<9} {:<20} {:>10}  {}\n", folder.empty() ? "" : "  ",
                   cut == std::string::npos ? path : path.substr(cut + 1), name(one.type), shape_text(one.dims),
                   size_text(static_cast<double>(bytes_of(one))), one.frozen ? "frozen" : states);
        if (number < numbers.size())
            for (const auto& [state, of] : numbers[number])
                fmt::print("      {:<26} {}\n", state, of.text());
        ++number;
    }
}

void print_text(const manifest& what, const std::string& folder, const std::vector<statistics>& numbers) {
    fmt::print("{}\n", folder);
    fmt::print("saved {} as commit {}, uuid {}\n", what.head.time, what.head.sequence, what.head.uuid);
    fmt::print("step {} ({} skipped), lr {}, loss scale {}\n", what.run.step, what.run.skipped, what.run.lr,
               what.run.scale);
    fmt::print("{} ranks, {} model ranks, stage {}, optimizer {}, schedule {}\n", what.head.ranks,
               what.head.model_ranks, what.head.stage, what.run.optimizer, what.run.schedule);
    fmt::print("{} of data in {} parts\n\ntensors\n", size_text(static_cast<double>(what.head.bytes)),
               what.files.size());
    print_tree(what, numbers);
    if (!what.attachments.empty()) fmt::print("\nattached arrays\n");
    for (const checkpoint::attachment_entry& one : what.attachments)
        fmt::print("  {:<30} {:<9} {:<20} {}\n", one.name, name(one.type), shape_text(one.dims),
                   one.per_rank ? formatted("rank {}", one.rank) : "replicated");
}

}  // namespace

int show(const options& what) {
    const std::string folder = checkpoint_at(what.path);
    if (folder.empty()) {
        fmt::print(stderr, "zero-ckpt: there is no checkpoint in {}\n", what.path);
        return nothing_there;
    }
    try {
        const manifest found = checkpoint::read_manifest(files::disk(), folder);
        const std::vector<statistics> numbers = what.statistics ? statistics_of(folder) : std::vector<statistics>{};
        if (what.json)
            print_manifest(found, numbers);
        else
            print_text(found, folder, numbers);
        return fine;
    } catch (const checkpoint::damage& problem) {
        fmt::print(stderr, "zero-ckpt: {}\n", problem.what());
        return damaged_found;
    }
}

}  // namespace zero::tool
