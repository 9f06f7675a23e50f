#pragma once

#include "tensor/stream.h"
#include "tensor/trace.h"

namespace lockstep::ops {

// Every op goes through here: its contract is checked once for all backends, and its time, flops
// and bytes are recorded when the stream is traced. `enqueue` is found by argument-dependent
// lookup, so a kernel that was declared but not written is a link error that names it.
template <class Op>
void run(CpuStream& stream, const Op& op) {
  op.check();
  const TraceSpan span(stream.trace(), Op::kName, op.flops(), op.bytes());
  enqueue(stream, op);
}

}  // namespace lockstep::ops
