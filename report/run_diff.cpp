#include "report/run_diff.h"

#include "train/recipe.h"

namespace lockstep {

RunDiff diff_runs(const Evidence& a, const Evidence& b, std::int64_t window) {
  RunDiff diff;
  diff.curve = compare_curves(a.curve, b.curve, window);
  diff.recipes_compared = !a.recipe_path.empty() && !b.recipe_path.empty();
  if (diff.recipes_compared) {
    diff.recipe = config_differences(read_recipe(a.recipe_path), read_recipe(b.recipe_path));
  }
  return diff;
}

}  // namespace lockstep
