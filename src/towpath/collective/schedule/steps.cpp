// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/steps.hpp"

#include <algorithm>

namespace towpath::collective {

Steps::Steps(std::vector<Step> steps) {
  if (!steps.empty()) list_ = std::make_shared<StepList>(StepList{std::move(steps)});
}

Steps::Steps(std::initializer_list<Step> steps) : Steps(std::vector<Step>(steps)) {}

std::vector<Step>& Steps::written_out() {
  const bool is_own = list_ != nullptr && list_.use_count() == 1 && list_->rows == 0;
  if (!is_own) {
    auto own = std::make_shared<StepList>();
    own->steps.assign(std::as_const(*this).begin(), std::as_const(*this).end());
    list_ = std::move(own);
    rotation_ = {};
  }
  return list_->steps;
}

bool Steps::operator==(const Steps& other) const {
  if (list_ == other.list_ && rotation_ == other.rotation_) return true;
  return size() == other.size() && std::equal(begin(), end(), other.begin());
}

}  // namespace towpath::collective
