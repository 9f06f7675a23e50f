#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/json_events.h"
#include "io/safetensors_header.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Takes the strings of the top-level weight_map; skips other top-level values.
class IndexEvents : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  [[nodiscard]] std::map<std::string, std::string> take() {
    if (!seen_) fail(ErrorKind::kData, where(), ": weight_map is missing");
    return std::move(map_);
  }

  bool null() override { return skip("null"); }
  bool boolean(bool) override { return skip("a boolean"); }
  bool number_integer(Json::number_integer_t) override { return skip("a number"); }
  bool number_unsigned(Json::number_unsigned_t) override { return skip("a number"); }
  bool number_float(Json::number_float_t, const Json::string_t&) override {
    return skip("a number");
  }
  bool string(Json::string_t& value) override {
    if (!in_map_ || depth_ != 2) return skip("a string");
    if (!map_.emplace(key_, value).second) {
      fail(ErrorKind::kData, where(), ": weight_map names tensor \"", printable(key_), "\" twice");
    }
    if (map_.size() > kMaxTensors) {
      fail(ErrorKind::kData, where(), ": weight_map has more than ", kMaxTensors, " tensors");
    }
    return true;
  }
  bool key(Json::string_t& name) override {
    if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(seen_, true)) {
        fail(ErrorKind::kData, where(), ": weight_map appears twice");
      }
    }
    key_ = name;
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_map_ && depth_ != 1) reject("an object");
    return descend();
  }
  bool start_array(std::size_t) override {
    if (in_map_ || depth_ == 0) reject("an array");
    return descend();
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

 protected:
  [[nodiscard]] std::string refusal(const std::string& found) const override {
    if (depth_ == 0) return "an object is wanted, found " + found;
    if (depth_ == 1) return "weight_map must be an object, found " + found;
    return concat("weight_map: tensor \"", printable(key_), "\" must map to a file name, found ",
                  found);
  }

 private:
  bool skip(const char* found) {
    if (in_map_ || depth_ == 0) reject(found);
    return true;
  }

  bool descend() {
    if (++depth_ > kMaxDepth) {
      fail(ErrorKind::kData, where(), ": nested deeper than ", kMaxDepth, " levels");
    }
    return true;
  }

  std::map<std::string, std::string> map_;
  std::string key_;
  std::size_t depth_ = 0;
  bool in_map_ = false;
  bool seen_ = false;
};

}  // namespace

std::map<std::string, std::string> parse_weight_map(std::string_view text,
                                                    const std::string& name) {
  IndexEvents events(printable(name));
  events.run(text);
  return events.take();
}

}  // namespace lockstep
