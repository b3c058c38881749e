// zero-ckpt: command line of the tool that looks at checkpoints. Needs neither MPI nor a context.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tool.hpp"

namespace {

using zero::tool::options;

CLI::App* add_command(CLI::App& to, const char* name, const char* text, options& what) {
    CLI::App* made = to.add_subcommand(name, text);
    made->add_option("DIR", what.path, "folder of checkpoints, or of one (DIR/TAG)")->required();
    made->add_flag("--json", what.json, "print JSON");
    return made;
}

int run(int (*command)(const options&), const options& what) {
    try {
        return command(what);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "zero-ckpt: %s\n", problem.what());
        return zero::tool::not_readable;
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Looks at libzero checkpoints: lists them, shows what is in one, verifies every byte.", "zero-ckpt");
    app.require_subcommand(1);
    app.footer("Exit codes: 0 fine, 1 damage found, 2 wrong usage, 3 no checkpoint there, 4 not readable.");
    options what;
    const CLI::App* list = add_command(app, "list", "the checkpoints of a folder, newest commit first", what);
    const CLI::App* show = add_command(app, "show", "what one checkpoint holds", what);
    CLI::App* verify = add_command(app, "verify", "is a checkpoint what was written?", what);
    verify->add_flag("--full", what.full, "read and sum all data too");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& problem) {
        return app.exit(problem) == 0 ? zero::tool::fine : zero::tool::usage;
    }
    if (list->parsed()) return run(zero::tool::list, what);
    if (show->parsed()) return run(zero::tool::show, what);
    return run(zero::tool::verify, what);
}
