#include "io/file.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "io/atomic_file.h"

namespace lockstep {
namespace {

void remove_below(FileSystem& fs, const std::string& directory) {
  for (const auto& name : fs.list(directory)) {
    const auto path = join_path(directory, name);
    if (fs.kind(path, FollowSymlinks::kNo) == FileKind::kDirectory) {
      remove_below(fs, path);
    } else {
      fs.remove(path);
    }
  }
  fs.remove(directory);
}

std::filesystem::path resolved(const std::string& path) {
  std::error_code error;
  auto result = std::filesystem::canonical(path, error);
  if (error) fail(ErrorKind::kIo, "cannot resolve ", printable(path), ": ", error.message());
  return result;
}

}  // namespace

void remove_tree(FileSystem& fs, const std::string& directory, const std::string& root,
                 const std::string& marker) {
  LOCKSTEP_CHECK(fs.kind(join_path(root, marker), FollowSymlinks::kNo) == FileKind::kRegular,
                 "refuse to remove ", printable(directory), ": ", printable(root),
                 " does not hold the marker file ", printable(marker));
  LOCKSTEP_CHECK(fs.kind(directory, FollowSymlinks::kNo) == FileKind::kDirectory,
                 "refuse to remove ", printable(directory), ": not a directory");
  const auto inner = resolved(directory);
  const auto outer = resolved(root);
  const auto relative = inner.lexically_relative(outer);
  LOCKSTEP_CHECK(!relative.empty() && relative != "." && *relative.begin() != "..",
                 "refuse to remove ", printable(directory), ": not below ", printable(root));
  remove_below(fs, directory);
}

std::string read_file(FileSystem& fs, const std::string& path, std::uint64_t max_bytes) {
  const auto file = fs.open_input(path);
  if (file->size() > max_bytes) {
    fail(ErrorKind::kInput, printable(path), " has ", file->size(),
         " bytes, more than the limit of ", max_bytes, " for a file of this kind");
  }
  std::string text(file->size(), '\0');
  file->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_file_atomic(FileSystem& fs, const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(fs, path);
  file.append(bytes);
  file.commit();
}

void write_file_atomic(FileSystem& fs, const std::string& path, std::string_view text) {
  write_file_atomic(fs, path, std::as_bytes(std::span(text)));
}

std::string parent_directory(const std::string& path) {
  auto end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  end = path.rfind('/', end);
  if (end == std::string::npos) return ".";
  end = path.find_last_not_of('/', end);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty()) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace lockstep
