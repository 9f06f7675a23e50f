#pragma once

namespace lockstep {

// Turns the first SIGTERM, SIGINT or SIGHUP into a request that the step loop sees at the next step
// boundary (save, then stop); a second one ends the process at once (checkpoints are atomic, so
// nothing is damaged). Installed for the object's lifetime; one at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // The signal that came, 0 when none did.
  [[nodiscard]] int signal() const;
};

}  // namespace lockstep
