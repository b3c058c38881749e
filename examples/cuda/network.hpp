// A network of dense layers with tanh between them, forward and backward, on a GPU or on the host with the same loops. It knows nothing
// of libzero: parameters and gradients are pointers that somebody gives it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace surrogate {

// Where the loops run and memory lies.
class machine {
public:
    static std::unique_ptr<machine> host();
    static std::unique_ptr<machine> device(int number);  // that one, modulo their count, with a stream of its own; null: there is none
    virtual ~machine() = default;
    virtual bool on_host() const = 0;
    virtual void* stream() const = 0;          // cudaStream_t; null on the host
    virtual float* take(std::int64_t count) = 0;                            // lives as long as the machine
    virtual void to_host(float* to, const float* from, std::int64_t count) = 0;    // all that was asked before has been done then
    virtual void from_host(float* to, const float* from, std::int64_t count) = 0;
};

struct layer {
    int inputs, outputs;
    bool bends;  // tanh
    std::int64_t weights() const { return std::int64_t{inputs} * outputs; }  // row-major [outputs][inputs]
};

class network {
public:
    network(machine& where, std::vector<layer> layers, int rows);
    const std::vector<layer>& layers() const { return layers_; }

    // Rows first .. first+rows-1 of sample `step`: inputs uniform in [-1, 1), and what the simulator would answer.
    void draw(std::int64_t step, std::int64_t first);
    // One layer after the other, from the first to the last ...
    void forward(std::size_t which, const float* weights, const float* bias);
    double sum_of_squares();  // of answer minus truth, over the rows; waits
    // ... and back. `scale` multiplies the squares whose gradient this is.
    void start_backward(float scale);
    void backward(std::size_t which, const float* weights, float* weights_gradient, float* bias_gradient);

private:
    machine& where_;
    std::vector<layer> layers_;
    int rows_;
    float* truth_;
    std::vector<float*> values_, gradients_;  // of the inputs of each layer, and of the answer
};

}  // namespace surrogate
