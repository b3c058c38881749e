// A job as a user's: through zero.h alone it saves a model with tensors of every type, odd shapes and odd names, for tests
// that read checkpoints with other programs. It writes down what they must find.
//   saved_model save FOLDER OUT    steps and saves "first", steps and saves "second" and, unchanged, "again"
//   saved_model load FOLDER OUT    loads the weights of the newest
// OUT/values: what the tensors are now, in their own types. OUT/expected: what the newest checkpoint's index.h5 shows. Lines:
// path<tab>dtype<tab>dims<tab>file of raw bytes. OUT/attached: the same of this job's attached arrays.
#include <mpi.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "zero/zero.h"

namespace {

void ask(int code) {
    if (code != ZERO_OK) throw std::runtime_error(zero_last_error());
}

struct shaped {
    std::string name;
    int type;
    std::vector<std::int64_t> dims;
    bool frozen = false;
    std::size_t count() const {
        std::size_t all = 1;
        for (const std::int64_t dim : dims) all *= static_cast<std::size_t>(dim);
        return all;
    }
};

const char* type_name(int type) {
    constexpr const char* names[] = {"", "fp32", "fp64", "bf16", "fp16", "int32", "int64", "uint8"};
    return names[type];
}
std::size_t width(int type) {
    constexpr std::size_t bytes[] = {0, 4, 8, 2, 2, 4, 8, 1};
    return bytes[type];
}
static_assert(ZERO_F32 == 1 && ZERO_F64 == 2 && ZERO_BF16 == 3 && ZERO_F16 == 4 && ZERO_I32 == 5 && ZERO_U8 == 7);

// "large" is cut into several blocks of checksums on every rank; "w" is a folder of another name as well.
const std::vector<shaped> model{{"w", ZERO_F32, {5, 7, 3}},
                                {"w/bias.x", ZERO_F32, {6}},
                                {"scalar", ZERO_F32, {}},
                                {"half", ZERO_BF16, {9, 4}},
                                {"half16", ZERO_F16, {3, 5}},
                                {"double", ZERO_F64, {2, 3, 4, 5}},
                                {"empty", ZERO_F32, {0, 4}},
                                {"Größe/λ b", ZERO_F64, {8}},
                                {"one", ZERO_BF16, {}},
                                {"large", ZERO_F32, {1001, 1003}},
                                {"ice/bf16", ZERO_BF16, {4, 4}, true},
                                {"ice/fp16", ZERO_F16, {7}, true},
                                {"ice/fp32", ZERO_F32, {2, 2}, true},
                                {"ice/fp64", ZERO_F64, {3, 1}, true}};

class job {
public:
    job(const std::string& out, bool weights_only) : out_(out) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        ask(zero_init(MPI_COMM_WORLD, R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5000},
            "libzero": {"stale_check": false}, "optimizer": {"type": "Adam", "params": {"lr": 0.25}}})", &z_));
        if (weights_only) ask(zero_set_text(z_, "checkpoint.load", "weights"));
        int ice = 0;
        ask(zero_group(z_, R"({"frozen": true})", &ice));
        for (const shaped& one : model)
            ask(zero_register(z_, one.name.c_str(), one.type, static_cast<int>(one.dims.size()), one.dims.data(), nullptr,
                              one.frozen ? ice : 0, nullptr));
        ask(zero_commit(z_));
    }
    ~job() { zero_finalize(&z_); }
    job(const job&) = delete;
    job& operator=(const job&) = delete;

    void save(const std::string& folder) {
        attach({"counter", ZERO_I64, {3}}, ZERO_REPLICATED);
        attach({"table/τ", ZERO_F64, {2, 3}}, ZERO_REPLICATED);
        attach({"epoch", ZERO_I32, {}}, ZERO_REPLICATED);
        attach({"rng", ZERO_U8, {7 + rank_}}, ZERO_PER_RANK);  // of another size on each rank
        attach({"none", ZERO_F32, {0}}, ZERO_PER_RANK);
        for (int id = 0; id < static_cast<int>(model.size()); ++id) ask(zero_fill(z_, id, "normal", 0, 1, 7));
        step();
        ask(zero_save(z_, folder.c_str(), "first"));
        step();
        ask(zero_save(z_, folder.c_str(), "second"));
        ask(zero_save(z_, folder.c_str(), "again"));
    }
    void load(const std::string& folder) { ask(zero_load(z_, folder.c_str(), nullptr)); }

    void write_down(bool states) {
        std::ofstream values, expected;
        if (rank_ == 0) values.open(out_ + "/values"), expected.open(out_ + "/expected");
        for (int id = 0; id < static_cast<int>(model.size()); ++id) {
            const shaped& one = model[static_cast<std::size_t>(id)];
            const std::string path = one.name == "w" ? "w.value" : one.name, raw = "raw-" + std::to_string(id) + "-";
            std::vector<char> bytes(one.count() * 8 + 1);
            ask(zero_gather_to(z_, id, 0, bytes.data()));
            write(values, one, one.name, one.type, raw + "value", bytes);
            if (!states) continue;
            const int kept = one.type == ZERO_F64 ? ZERO_F64 : ZERO_F32;
            if (one.frozen) write(expected, one, "/parameters/" + path, one.type, raw + "value", bytes);
            for (const char* state : {"master", "exp_avg", "exp_avg_sq"}) {
                if (one.frozen) break;
                ask(zero_gather_state(z_, id, state, 0, bytes.data()));
                const std::string folder = std::string(state) == "master" ? "/parameters/" : "/states/" + std::string(state) + "/";
                write(expected, one, folder + path, kept, raw + state, bytes);
            }
        }
    }

private:
    // Gradients that differ by rank, tensor, element and step; 16-bit ones are 1 and -1.
    void step() {
        for (int id = 0; id < static_cast<int>(model.size()); ++id) {
            const shaped& one = model[static_cast<std::size_t>(id)];
            std::vector<char> bytes(one.count() * 8 + 1);
            for (std::size_t k = 0; k < one.count(); ++k) {
                const float g = static_cast<float>((k * 7 + static_cast<std::size_t>(id * 5 + rank_ * 11)) % 29) - 14.0F;
                if (one.type == ZERO_F64)
                    reinterpret_cast<double*>(bytes.data())[k] = static_cast<double>(g);
                else if (one.type == ZERO_F32)
                    reinterpret_cast<float*>(bytes.data())[k] = g;
                else
                    reinterpret_cast<std::uint16_t*>(bytes.data())[k] =
                        static_cast<std::uint16_t>((g < 0 ? 0x8000 : 0) | (one.type == ZERO_BF16 ? 0x3f80 : 0x3c00));
            }
            ask(zero_reduce(z_, id, bytes.data()));
        }
        ask(zero_step(z_));
    }

    void attach(const shaped& one, int kind) {
        std::vector<char>& bytes = attached_.emplace_back(one.count() * width(one.type));
        for (std::size_t k = 0; k < bytes.size(); ++k)
            bytes[k] = static_cast<char>(3 * k + attached_.size() + (kind == ZERO_PER_RANK ? static_cast<std::size_t>(rank_) : 0));
        ask(zero_attach(z_, one.name.c_str(), one.type, static_cast<int>(one.dims.size()), one.dims.data(), bytes.data(), kind));
        if (kind == ZERO_REPLICATED && rank_ != 0) return;
        std::ofstream to(out_ + "/attached-" + std::to_string(rank_), std::ios::app);
        const std::string folder = kind == ZERO_PER_RANK ? "per_rank/rank-0000" + std::to_string(rank_) : "replicated";
        write(to, one, "/attached/" + folder + "/" + one.name, one.type,
              "attached-" + std::to_string(rank_) + "-" + std::to_string(attached_.size()), bytes);
    }

    void write(std::ofstream& list, const shaped& one, const std::string& path, int type, const std::string& file,
               const std::vector<char>& bytes) const {
        if (!list.is_open()) return;
        std::ofstream(out_ + "/" + file, std::ios::binary)
            .write(bytes.data(), static_cast<std::streamsize>(one.count() * width(type)));
        list << path << '\t' << type_name(type) << '\t';
        for (const std::int64_t dim : one.dims) list << dim << ',';
        list << '\t' << out_ << '/' << file << '\n';
    }

    std::string out_;
    int rank_ = 0;
    zero_t z_ = nullptr;
    std::vector<std::vector<char>> attached_;
};

}  // namespace

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int answer = 0;
    try {
        const std::string mode = words[1], folder = words[2], out = words[3];
        job work(out, mode == "load");
        if (mode == "load")
            work.load(folder);
        else
            work.save(folder);
        work.write_down(mode != "load");
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "saved_model: %s\n", problem.what());
        answer = 1;
    }
    MPI_Finalize();
    return answer;
}
