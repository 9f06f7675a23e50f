#pragma once

namespace lockstep::ops {

// What becomes of what an output held before. kAdd: the result, finished, is added to it, one
// rounding an element; so a product and a sum that lie apart give the same bits.
enum class Accumulate { kOverwrite, kAdd };

}  // namespace lockstep::ops
