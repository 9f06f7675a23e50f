#include "data/order_cache.h"

#include <sys/mman.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/json_field.h"
#include "data/shuffle.h"

namespace lockstep {

namespace {

constexpr std::uint64_t kMaxSidecarBytes = 4096;

// Random access over gigabytes wants huge pages. Advice only: nothing depends on it.
void advise_huge_pages(std::uint32_t* data, std::size_t count) {
  constexpr std::uintptr_t kHuge = std::uintptr_t{1} << 21U;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + kHuge - 1) / kHuge * kHuge;
  const auto end = reinterpret_cast<std::uintptr_t>(data + count) / kHuge * kHuge;
  if (begin < end) {
    static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
  }
}

std::string digest_of(std::span<const std::byte> bytes) {
  return hash128_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The cached file, mapped and checked; empty when there is none.
std::optional<MappedFile> open_cached(FileSystem& fs, const OrderSpec& spec,
                                      const std::string& path) {
  const std::string sidecar = path + ".json";
  if (!fs.exists(sidecar) || !fs.exists(path)) return std::nullopt;
  const Json json = parse_json(read_file(fs, sidecar, kMaxSidecarBytes), sidecar);
  const auto n = unsigned_field(json, "instances", sidecar);
  const auto epoch = unsigned_field(json, "epoch", sidecar);
  const auto seed = unsigned_field(json, "seed", sidecar);
  if (n != spec.instances || epoch != spec.epoch || seed != spec.seed) {
    fail(ErrorKind::kData, printable(sidecar), ": says ", n, " instances, epoch ", epoch, ", seed ",
         seed, " where its name says ", spec.instances, ", ", spec.epoch, ", ", spec.seed,
         "; delete it to build the order again");
  }
  MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() != 4 * spec.instances) {
    fail(ErrorKind::kData, printable(path), ": ", bytes.size(), " bytes where ", spec.instances,
         " instances take ", 4 * spec.instances, "; delete it to build the order again");
  }
  const std::string wanted = string_field(json, "xxh128", sidecar);
  const std::string found = digest_of(bytes);
  if (found != wanted) {
    fail(ErrorKind::kData, printable(path), ": checksum ", found, " where its .json says ",
         printable(wanted), ": the cached order is damaged; delete it to build it again");
  }
  return file;
}

void store(FileSystem& fs, const OrderSpec& spec, const std::string& path,
           std::span<const std::uint32_t> values) {
  const auto bytes = std::as_bytes(values);
  fs.create_directories(spec.cache_directory);
  // The .json goes last and says that the data are whole.
  if (fs.exists(path + ".json")) fs.remove(path + ".json");
  write_file_atomic(fs, path, bytes);
  const OrderedJson sidecar = {{"instances", spec.instances},
                               {"epoch", spec.epoch},
                               {"seed", spec.seed},
                               {"xxh128", digest_of(bytes)}};
  write_file_atomic(fs, path + ".json", sidecar.dump() + "\n");
}

}  // namespace

std::string order_cache_name(const OrderSpec& spec) {
  return concat("global_indices_dataset_size", spec.instances, "_epoch", spec.epoch, "_seed",
                spec.seed, "_v1.npy");
}

ShuffledIndices ShuffledIndices::make(FileSystem& fs, const OrderSpec& spec) {
  if (spec.instances > 0xffffffffU) {
    fail(ErrorKind::kConfig, "the olmo-core order counts in 32 bits and cannot order ",
         spec.instances, " instances; use feistel");
  }
  ShuffledIndices indices;
  const std::string path = join_path(spec.cache_directory, order_cache_name(spec));
  if (!spec.cache_directory.empty()) {
    indices.file_ = open_cached(fs, spec, path);
    if (indices.file_) return indices;
  }
  indices.count_ = spec.instances;
  try {
    indices.memory_ = std::make_unique_for_overwrite<std::uint32_t[]>(spec.instances);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kIo, "the olmo-core order of ", spec.instances, " instances needs ",
         human_bytes(4 * spec.instances), " of memory and the system refused it");
  }
  advise_huge_pages(indices.memory_.get(), indices.count_);
  numpy_shuffled_arange(spec.seed + spec.epoch, {indices.memory_.get(), indices.count_});
  if (!spec.cache_directory.empty()) store(fs, spec, path, indices.values());
  return indices;
}

std::span<const std::uint32_t> ShuffledIndices::values() const {
  if (file_) {
    const auto bytes = file_->bytes();
    return {reinterpret_cast<const std::uint32_t*>(bytes.data()), bytes.size() / 4};
  }
  return {memory_.get(), count_};
}

}  // namespace lockstep
