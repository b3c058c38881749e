// zero-ckpt: command line of the tool that looks at checkpoints and turns them into other files. Needs neither MPI nor a
// context.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tool.hpp"

namespace {

using zero::tool::options;

constexpr const char* codes =
    "Exit codes of list, show, verify: 0 fine, 1 damage found, 2 wrong usage, 3 no checkpoint there, 4 not readable.\n"
    "Of diff: 0 equal, 1 different, 2 trouble. Of export, import, merge, prune: 0 done, 2 trouble.";

struct command {
    int (*run)(const options&);
    int on_error;
    CLI::App* app;
};

CLI::App* with_folder(CLI::App* app, options& what) {
    app->add_option("DIR", what.path, "folder of checkpoints, or of one (DIR/TAG)")->required();
    return app;
}

std::vector<command> add_commands(CLI::App& app, options& what) {
    using namespace zero::tool;
    const auto add = [&](const char* name, const char* text) { return app.add_subcommand(name, text); };
    const auto json = [&](CLI::App* to) { to->add_flag("--json", what.json, "print JSON"); };

    CLI::App* list = with_folder(add("list", "the checkpoints of a folder, newest commit first"), what);
    json(list);
    CLI::App* show = with_folder(add("show", "what one checkpoint holds"), what);
    json(show);
    show->add_flag("--statistics", what.statistics, "least, largest and mean element of every tensor and state");
    CLI::App* verify = with_folder(add("verify", "is a checkpoint what was written?"), what);
    json(verify);
    verify->add_flag("--full", what.full, "read and sum all data too");

    CLI::App* diff = add("diff", "how the tensors of two checkpoints differ, in bits and as numbers");
    diff->add_option("A", what.path, "folder of checkpoints, or of one")->required();
    diff->add_option("B", what.other, "another")->required();
    json(diff);

    CLI::App* to_file = with_folder(add("export", "whole tensors of one checkpoint as another file"), what);
    to_file->add_option("--safetensors", what.file, "the file to write; must not be there yet")->required();
    to_file->add_flag("--states", what.states, "optimizer states too, as states/<state>/<tensor>");
    to_file->add_option("--dtype", what.type, "of values: registered (the default), stored, fp32, fp64, bf16, fp16")
        ->check(CLI::IsMember({"registered", "stored", "fp32", "fp64", "bf16", "fp16"}));
    json(to_file);

    CLI::App* from_file = add("import", "a checkpoint of values alone, for \"checkpoint.load\": \"weights\"");
    from_file->add_option("--safetensors", what.file, "the file to read")->required();
    from_file->add_option("DIR", what.path, "folder of checkpoints")->required();
    from_file->add_option("TAG", what.tag, "name of the new checkpoint")->required();
    json(from_file);

    CLI::App* merge = with_folder(add("merge", "plain HDF5: every tensor whole in one dataset"), what);
    merge->add_option("FILE", what.file, "the file to write; must not be there yet")->required();
    merge->add_flag("--states", what.states, "optimizer states too");
    json(merge);

    CLI::App* prune = add("prune", "removes old checkpoints; never the newest nor the one that LATEST names");
    prune->add_option("DIR", what.path, "folder of checkpoints")->required();
    prune->add_option("--keep-last", what.keep_last, "so many stay, the newest that are undamaged")
        ->required()
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    prune->add_option("--keep-every", what.keep_every, "and every step divisible by this")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    prune->add_flag("--dry-run", what.dry_run, "only say what would be removed");
    json(prune);

    return {{zero::tool::list, not_readable, list},
            {zero::tool::show, not_readable, show},
            {zero::tool::verify, not_readable, verify},
            {zero::tool::diff, trouble, diff},
            {zero::tool::export_safetensors, trouble, to_file},
            {zero::tool::import_safetensors, trouble, from_file},
            {zero::tool::merge, trouble, merge},
            {zero::tool::prune, trouble, prune}};
}

int run(const command& which, const options& what) {
    try {
        return which.run(what);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "zero-ckpt: %s\n", problem.what());
        return which.on_error;
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Looks at libzero checkpoints and turns them into other files. Works without MPI.", "zero-ckpt");
    app.require_subcommand(1);
    app.footer(codes);
    options what;
    const std::vector<command> commands = add_commands(app, what);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& problem) {
        return app.exit(problem) == 0 ? zero::tool::fine : zero::tool::usage;
    }
    for (const command& one : commands)
        if (one.app->parsed()) return run(one, what);
    return zero::tool::usage;
}
