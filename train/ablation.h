#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "train/recipe.h"
#include "train/trainer.h"

// Variants of one recipe, trained on the same batches so that they can be compared fairly on a
// machine that other work disturbs: every variant is a run of its own, and the process trains a few
// steps of each in turn.
namespace lockstep {

struct Variant {
  std::string label;  // what it changes: "model.n_heads=8 model.head_dim=32"; "recipe" for nothing
  Recipe recipe;      // resolved; run.dir is its own
};

// What a variant is made of and what a step of it computes.
struct VariantSize {
  std::int64_t parameters = 0;  // rows padded, as trained
  std::int64_t non_embedding_parameters = 0;
  // Of a step, forward and backward, by the three conventions of model/counts.h.
  double step_flops = 0;  // window-exact
  double step_flops_maxtext = 0;
  double step_flops_olmo_core = 0;
};
[[nodiscard]] VariantSize variant_size(const Recipe& recipe);

// The overrides in "model.n_heads=8,model.head_dim=32": cut at commas outside brackets and quotes.
// kConfig for an empty one.
[[nodiscard]] std::vector<std::string> split_overrides(std::string_view text);

// The variants of a recipe file, overrides[i] on top of `common`, each in `directory`/variant-I
// (from 1). Periodic evaluations and samples are off, checkpoints are those of the turns.
// Errors as read_recipe; kConfig unless there are two or more, all different, that see the same
// batches in the same number of steps: [data], [batch], the length of [train] and the vocabulary
// must not vary.
[[nodiscard]] std::vector<Variant> make_variants(
    const std::string& recipe_file, std::span<const std::string> common,
    std::span<const std::vector<std::string>> overrides, const std::string& directory);

// One variant's turn: it is trained up to and including `last_step`.
struct Turn {
  std::size_t variant = 0;
  std::int64_t last_step = 0;
};
// Turns of `block` steps up to `last_step`; the order of the variants is turned round every time
// (ABBA), so that a machine that slows down steadily favours none.
[[nodiscard]] std::vector<Turn> turns(std::size_t variants, std::int64_t last_step,
                                      std::int64_t block);

struct AblationObserver {
  Say say;
  // Of a step: whose, and how many steps of all variants are done and wanted.
  std::function<void(std::size_t variant, const StepRecord&, std::int64_t done, std::int64_t all)>
      step;
};

// Trains every variant to its end in turns, going on where an earlier process stopped: turns whose
// steps are in a variant's newest checkpoint are passed over. Every step's bits are those of
// `lockstep train` of the variant's recipe. Returns the signal that stopped it, saved, or 0. Errors
// as train().
[[nodiscard]] int train_variants(FileSystem& fs, const std::vector<Variant>& variants,
                                 std::int64_t block, const AblationObserver& observer);

}  // namespace lockstep
