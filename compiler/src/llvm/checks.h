// Bounds checks as the passes see them.

#pragma once

#include "shared.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace llvm {
class BasicBlock;
class BranchInst;
class LoadInst;
class Value;
class SCEV;
class ScalarEvolution;
} // namespace llvm

namespace awsm {

// What lies further behind an index is not improved: with indices of 32 bits there is no such access, with 64 bits no module misses it.
inline constexpr uint64_t BytesMax = uint64_t(1) << 34;
static_assert(BytesMax >= Memory32BytesMax + AccessBytesMax, "a constant offset of 32 bits and the widest access");

// A branch to a trap unless `index + bytes <= length`, where neither side wraps and `length` is a memory's at that time.
struct Check {
    llvm::BranchInst *branch;
    unsigned trapSuccessor;
    llvm::Value *lengthValue;
    llvm::LoadInst *length; // one of those whose value it may be: all are of the same record
    llvm::Value *index;     // i64
    uint64_t bytes;

    llvm::BasicBlock *passed() const;
    // Removes the branch: control always goes where it goes when the bytes are inside.
    void remove() const;
};

// The check that ends a block, if one does.
std::optional<Check> checkAt(llvm::BasicBlock &block);

// A check's index without its widening from 32 bits, and how many bytes behind it have to be inside.
std::pair<const llvm::SCEV *, uint64_t> indexOf(const Check &check, llvm::ScalarEvolution &evolution);

} // namespace awsm
