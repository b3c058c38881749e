// Session, errors, types and attributes of hdf5.hpp. The driver that keeps files in memory is hdf5_image.cpp.
#include "hdf5.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace zero::hdf5 {
namespace {

std::mutex& one_at_a_time() {
    static std::mutex guard;  // guards state that HDF5 itself keeps once per process
    return guard;
}

herr_t first_reason(unsigned, const H5E_error2_t* entry, void* to) {
    auto* text = static_cast<std::string*>(to);
    if (text->empty() && entry->desc != nullptr) *text = entry->desc;
    return 0;
}

type float16(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
    type made(H5Tcopy(H5T_IEEE_F32LE), "copy a type");
    ask(H5Tset_fields(made.get(), 15, mantissa_bits, exponent_bits, 0, mantissa_bits), "set the fields of a type");
    ask(H5Tset_size(made.get(), 2), "set the size of a type");
    ask(H5Tset_ebias(made.get(), bias), "set the bias of a type");
    return made;
}

type complex_of(hid_t real, std::size_t bytes) {
    type made(H5Tcreate(H5T_COMPOUND, 2 * bytes), "create a type");
    ask(H5Tinsert(made.get(), "r", 0, real), "insert into a type");
    ask(H5Tinsert(made.get(), "i", bytes, real), "insert into a type");
    return made;
}

template <typename Value>
std::vector<unsigned char> repeated(Value value, std::size_t times = 1) {
    std::vector<unsigned char> bytes(times * sizeof value);
    for (std::size_t k = 0; k < times; ++k) std::memcpy(bytes.data() + k * sizeof value, &value, sizeof value);
    return bytes;
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "checkpoints are written as memory is: little-endian");

void check_version(unsigned major, unsigned minor, unsigned release) {
    require(
        major == H5_VERS_MAJOR && minor == H5_VERS_MINOR && release == H5_VERS_RELEASE, code::unsupported,
        "libzero was built with HDF5 {}.{}.{}, but HDF5 {}.{}.{} is loaded: let the program find the former, or build "
        "libzero again",
        H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, major, minor, release);
}

session::session() : alone_(one_at_a_time()) {
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    check_version(major, minor, release);
    H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

session::~session() {
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

void failed(const char* what) {
    std::string reason;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_reason, &reason);
    H5Eclear2(H5E_DEFAULT);
    fail(code::io, "HDF5 could not {}: {}", what, reason.empty() ? "it gives no reason" : reason);
}

type file_type(dtype which) {
    switch (which) {
        case dtype::f32:
            return {H5Tcopy(H5T_IEEE_F32LE), "copy a type"};
        case dtype::f64:
            return {H5Tcopy(H5T_IEEE_F64LE), "copy a type"};
        case dtype::bf16:
            return float16(8, 7, 127);
        case dtype::f16:
            return float16(5, 10, 15);
        case dtype::i32:
            return {H5Tcopy(H5T_STD_I32LE), "copy a type"};
        case dtype::i64:
            return {H5Tcopy(H5T_STD_I64LE), "copy a type"};
        case dtype::u8:
            return {H5Tcopy(H5T_STD_U8LE), "copy a type"};
        case dtype::c64:
            return complex_of(H5T_IEEE_F32LE, 4);
        case dtype::c128:
            return complex_of(H5T_IEEE_F64LE, 8);
    }
    fail(code::internal, "dtype {} has no HDF5 type", static_cast<int>(which));
}

std::vector<unsigned char> fill_value(dtype which) {
    constexpr float nan32 = std::numeric_limits<float>::quiet_NaN();
    constexpr double nan64 = std::numeric_limits<double>::quiet_NaN();
    switch (which) {
        case dtype::f32:
            return repeated(nan32);
        case dtype::f64:
            return repeated(nan64);
        case dtype::bf16:
            return repeated(std::uint16_t{0x7fc0});
        case dtype::f16:
            return repeated(std::uint16_t{0x7e00});
        case dtype::i32:
            return repeated(std::numeric_limits<std::int32_t>::min());
        case dtype::i64:
            return repeated(std::numeric_limits<std::int64_t>::min());
        case dtype::u8:
            return repeated(std::uint8_t{255});
        case dtype::c64:
            return repeated(nan32, 2);
        case dtype::c128:
            return repeated(nan64, 2);
    }
    return {};
}

list link_list() {
    list made(H5Pcreate(H5P_LINK_CREATE), "create a link list");
    ask(H5Pset_create_intermediate_group(made.get(), 1), "create groups on the way");
    ask(H5Pset_char_encoding(made.get(), H5T_CSET_UTF8), "set the characters of names");
    return made;
}

space make_space(std::span<const std::int64_t> dims) {
    if (dims.empty()) return {H5Screate(H5S_SCALAR), "create a space"};
    const std::vector<hsize_t> extents(dims.begin(), dims.end());
    return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), "create a space"};
}

attributes::attributes() : text_(H5Tcopy(H5T_C_S1), "copy a type"), scalar_(H5Screate(H5S_SCALAR), "create a space") {
    ask(H5Tset_size(text_.get(), H5T_VARIABLE), "set the size of a type");
    ask(H5Tset_cset(text_.get(), H5T_CSET_UTF8), "set the characters of a type");
}

void attributes::put(hid_t object, const char* name, hid_t stored, const void* value) const {
    const attribute made(H5Acreate2(object, name, stored, scalar_.get(), H5P_DEFAULT, H5P_DEFAULT),
                         "create an attribute");
    ask(H5Awrite(made.get(), stored, value), "write an attribute");
}

void attributes::put(hid_t object, const char* name, const std::string& text) const {
    const char* start = text.c_str();
    put(object, name, text_.get(), &start);
}

void attributes::put(hid_t object, const char* name, std::int64_t number) const {
    put(object, name, H5T_STD_I64LE, &number);
}
void attributes::put(hid_t object, const char* name, double number) const {
    put(object, name, H5T_IEEE_F64LE, &number);
}

}  // namespace zero::hdf5
