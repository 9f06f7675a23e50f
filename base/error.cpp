#include "base/error.h"

namespace lockstep {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBug:
      return 1;
    case ErrorKind::kConfig:
    case ErrorKind::kInput:
      return 2;
    case ErrorKind::kData:
      return 3;
    case ErrorKind::kNumeric:
      return 4;
    case ErrorKind::kIo:
    case ErrorKind::kDevice:
    case ErrorKind::kComm:
      return 5;
    case ErrorKind::kPreempted:
      return 75;
  }
  return 1;
}

}  // namespace lockstep
