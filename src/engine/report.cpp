// zero_report: a table of memory by purpose (smallest and largest over ranks), traffic and times.
#include <algorithm>
#include <cmath>

#include "engine/run.hpp"

namespace zero {

std::string engine::report() {
    agreement_->enter(calls::report(), [&] { require_committed("zero_report"); });
    constexpr auto purposes = static_cast<int>(purpose::count_);
    std::vector<std::int64_t> most;
    for (int p = 0; p < purposes; ++p) most.push_back(ledger_.bytes(static_cast<purpose>(p)));
    most.push_back(ledger_.bytes(place::host));
    most.push_back(ledger_.peak(place::host));
    most.push_back(ranks_->sent().reduce_bytes);
    most.push_back(ranks_->sent().gather_bytes);
    for (const double seconds : {run_->seconds_reducing, run_->seconds_updating}) most.push_back(std::llround(seconds * 1e6));
    const std::size_t rows = most.size();
    for (std::size_t i = 0; i < rows; ++i) most.push_back(-most[i]);
    ranks_->all_reduce(most, comm::combine::maximum);

    std::string text = formatted("libzero: stage {}, {} ranks on {} nodes, {} elements in {} tensors, {} updates, {} skipped\n",
                                   settings_.stage, ranks_->size(), ranks_->nodes().nodes, layout_.elements(), registry_.count(),
                                   run_->step, run_->skipped);
    text += formatted("{:<24}{:>18}{:>18}\n", "bytes per rank", "smallest", "largest");
    const auto line = [&](const std::string& label, std::size_t i) {
        text += formatted("{:<24}{:>18}{:>18}\n", label, -most[rows + i], most[i]);
    };
    for (int p = 0; p < purposes; ++p) line(name(static_cast<purpose>(p)), static_cast<std::size_t>(p));
    line("total", static_cast<std::size_t>(purposes));
    line("peak", static_cast<std::size_t>(purposes) + 1);
    line("sent in reductions", static_cast<std::size_t>(purposes) + 2);
    line("sent in gathers", static_cast<std::size_t>(purposes) + 3);
    text += formatted("seconds (slowest rank): finishing reductions {:.3f}, updates and publishing {:.3f}\n",
                        static_cast<double>(most[rows - 2]) * 1e-6, static_cast<double>(most[rows - 1]) * 1e-6);
    return text;
}

}  // namespace zero
