#include "cli/golden_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "io/safetensors.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kGradient = "grad.";

[[noreturn]] void wrong(const SafetensorsReader& file, const TensorInfo& tensor,
                        std::string_view wanted) {
  std::string shape;
  for (const std::uint64_t dim : tensor.shape) shape += (shape.empty() ? "" : ", ") + concat(dim);
  fail(ErrorKind::kInput, printable(file.file_name(tensor)), ": tensor ", printable(tensor.name),
       " is ", name_of(tensor.dtype), " [", shape, "], wanted ", wanted);
}

template <class T>
std::vector<std::int32_t> narrow(const SafetensorsReader& file, const TensorInfo& tensor) {
  std::vector<T> wide(tensor.elements);
  file.read_tensor_range(tensor.name, 0, std::as_writable_bytes(std::span(wide)));
  std::vector<std::int32_t> result;
  result.reserve(wide.size());
  for (const T value : wide) {
    if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
      fail(ErrorKind::kInput, printable(file.file_name(tensor)), ": tensor ",
           printable(tensor.name), " holds ", value, ", wanted 0 to 2147483647");
    }
    result.push_back(static_cast<std::int32_t>(value));
  }
  return result;
}

std::vector<std::int32_t> integers(const SafetensorsReader& file, const TensorInfo& tensor) {
  if (tensor.dtype == StoredDType::kI64) return narrow<std::int64_t>(file, tensor);
  if (tensor.dtype == StoredDType::kI32) return narrow<std::int32_t>(file, tensor);
  wrong(file, tensor, "I64 or I32");
}

// (B, T - 1) mask of targets, each the next token, to (B, T) targets.
std::vector<std::int32_t> targets_of(const Reference& reference,
                                     const std::vector<std::int32_t>& mask) {
  const auto T = static_cast<std::size_t>(reference.positions);
  std::vector<std::int32_t> targets(reference.tokens.size(), -1);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::size_t t = i % T;
    if (t + 1 == T) continue;
    if (mask.empty() || mask[i / T * (T - 1) + t] != 0) targets[i] = reference.tokens[i + 1];
  }
  return targets;
}

void read_inputs(const SafetensorsReader& file, Reference& reference) {
  const TensorInfo& ids = file.at("input_ids");
  if (ids.shape.size() != 2 || ids.elements == 0) wrong(file, ids, "[B, T]");
  const std::uint64_t B = ids.shape[0];
  const std::uint64_t T = ids.shape[1];
  reference.sequences = static_cast<std::int64_t>(B);
  reference.positions = static_cast<std::int64_t>(T);
  reference.tokens = integers(file, ids);
  const TensorInfo& logits = file.at("logits");
  if (logits.shape.size() != 3 || logits.shape[0] != B || logits.shape[1] > T ||
      logits.elements == 0) {
    wrong(file, logits, concat("[", B, ", at most ", T, ", V]"));
  }
  reference.compared = static_cast<std::int64_t>(logits.shape[1]);
  reference.vocab = static_cast<std::int64_t>(logits.shape[2]);
  if (const TensorInfo* segments = file.find("segment_ids"); segments != nullptr) {
    file.require_shape("segment_ids", ids.shape);
    reference.segments = integers(file, *segments);
  }
  std::vector<std::int32_t> mask;
  if (const TensorInfo* stored = file.find("target_mask"); stored != nullptr) {
    file.require_shape("target_mask", std::vector<std::uint64_t>{B, T - 1});
    mask = integers(file, *stored);
  }
  reference.targets = targets_of(reference, mask);
}

}  // namespace

Reference open_golden_file(FileSystem& fs, const std::string& path) {
  // Shared by the functions below; std::function must be copyable.
  const auto file =
      std::make_shared<const SafetensorsReader>(SafetensorsReader::open_file(fs, path));
  Reference reference;
  read_inputs(*file, reference);
  const std::int64_t P = reference.compared;
  const std::int64_t V = reference.vocab;
  const std::int64_t begin = reference.positions - P;
  reference.logits = [file, P, V, begin](std::int64_t sequence, std::int64_t first,
                                         std::span<float> out) {
    file->read_f32("logits", static_cast<std::uint64_t>((sequence * P + first - begin) * V), out);
  };
  for (const TensorInfo& tensor : file->tensors()) {
    if (!tensor.name.starts_with(kGradient)) continue;
    reference.gradients.push_back({.name = tensor.name.substr(kGradient.size()),
                                   .elements = static_cast<std::int64_t>(tensor.elements),
                                   .read = [file, name = tensor.name](std::span<float> out) {
                                     file->read_f32(name, 0, out);
                                   }});
  }
  std::sort(reference.gradients.begin(), reference.gradients.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  if (file->find("grad_norm") != nullptr) {
    float norm = 0;
    file->read_f32("grad_norm", 0, std::span(&norm, 1));
    reference.gradient_norm = norm;
  }
  return reference;
}

}  // namespace lockstep::cli
