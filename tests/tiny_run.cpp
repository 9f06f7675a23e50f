#include "tests/tiny_run.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"

namespace lockstep {
namespace {

constexpr const char* kRecipe = R"([model]
preset = "custom"
n_layers = 4
d_model = 32
n_heads = 4
n_kv_heads = 2
head_dim = 8
d_ff = 48
vocab_size = 100
context_length = 64
sliding_window = 8
eos_token_id = 0
pad_token_id = -1
[data]
mix = "data/train.mix"
base_dir = "data"
sequence_length = 33
[batch]
instances = 6
microbatch = 2
[train]
steps = 20
[optim]
lr = 3e-3
[schedule]
warmup_steps = 3
[checkpoint]
interval = 4
keep_last = 2
)";

// Documents of a noisy cycle through the ids, each ended by 0.
std::string token_bytes(std::size_t tokens, const char* name) {
  const CounterRng rng(1, name);
  std::string bytes;
  std::uint32_t id = 1;
  for (std::size_t i = 0; i < tokens; ++i) {
    const double u = rng.uniform(i);
    id = u < 0.02 ? 0 : (u < 0.2 ? 1 + static_cast<std::uint32_t>(rng.u64(i) % 99) : id % 99 + 1);
    bytes.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  return bytes;
}

}  // namespace

void TinyRun::SetUp() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  directory_ = (std::filesystem::temp_directory_path() /
                concat("lockstep-", test->test_suite_name(), "-", test->name(), "-", getpid()))
                   .string();
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_ + "/data");
  write("tiny.toml", kRecipe);
  write("data/a.npy", token_bytes(33 * 70 + 5, "a"));
  write("data/b.npy", token_bytes(33 * 29 + 30, "b"));
  write("data/held.npy", token_bytes(700, "held"));
  write("data/train.mix", "a,a.npy\nb,b.npy\n");
  write("data/held.mix", "held,held.npy\n");
}

void TinyRun::TearDown() {
  if (!HasFailure()) std::filesystem::remove_all(directory_);
}

std::vector<std::string> TinyRun::arguments(const std::string& run,
                                            const std::vector<std::string>& overrides) const {
  std::vector<std::string> all = {"train", "tiny.toml", "run.dir=" + run};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

ProcessResult TinyRun::train(const std::string& run, const std::vector<std::string>& overrides) {
  return run_lockstep(directory_, arguments(run, overrides));
}

void TinyRun::train_well(const std::string& run, const std::vector<std::string>& overrides) {
  const ProcessResult result = train(run, overrides);
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
}

std::map<std::int64_t, std::string> TinyRun::steps_of(const std::string& run) const {
  std::map<std::int64_t, std::string> steps;
  std::istringstream lines(read(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json(line, run);
    const bool fresh =
        steps
            .emplace(json.at("step").get<std::int64_t>(),
                     concat(json.at("loss_bits"), json.at("grad_norm_bits"), json.at("lr"),
                            json.at("batch_digest"), json.at("skipped")))
            .second;
    EXPECT_TRUE(fresh) << "step logged twice: " << line;
  }
  return steps;
}

std::string TinyRun::digest_of(const std::string& run) const {
  const ProcessResult result = run_lockstep(directory_, {"checkpoint", "digest", run});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

void TinyRun::expect_same_run(const std::string& a, const std::string& b) const {
  EXPECT_EQ(steps_of(a), steps_of(b)) << a << " and " << b;
  EXPECT_EQ(digest_of(a), digest_of(b)) << a << " and " << b;
}

std::string TinyRun::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(path(name), std::ios::binary).rdbuf();
  return text.str();
}

void TinyRun::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
}

void TinyRun::corrupt_byte(const std::string& name, std::uint64_t offset) const {
  std::string bytes = read(name);
  LOCKSTEP_CHECK(offset < bytes.size(), name, " has ", bytes.size(), " bytes");
  bytes[offset] = static_cast<char>(bytes[offset] ^ 0x20);
  write(name, bytes);
}

}  // namespace lockstep
