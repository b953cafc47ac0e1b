/// \file
/// What a kernel does together with others of its kind, in other processes.
#pragma once

#include <functional>

namespace saddleback {

/// Adds to the numbers of this process, in place, those of all others.
using Exchange = std::function<void(double*)>;

}  // namespace saddleback
