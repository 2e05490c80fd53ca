// Which memory an access touches, as alias.rs says it in metadata.

#pragma once

#include "shared.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Metadata.h"

#include <optional>

namespace awsm {

// The alias class of a load or store. None where it has no class of ours: merging accesses may have lost it.
inline std::optional<AliasClass> aliasClassOf(const llvm::Instruction &access) {
    const llvm::MDNode *tag = access.getMetadata(llvm::LLVMContext::MD_tbaa);
    const auto *type = tag && tag->getNumOperands() ? llvm::dyn_cast_or_null<llvm::MDNode>(tag->getOperand(0)) : nullptr;
    const auto *node = type && type->getNumOperands() ? llvm::dyn_cast_or_null<llvm::MDString>(type->getOperand(0)) : nullptr;
    if (!node)
        return std::nullopt;
    const llvm::StringRef name = node->getString().split(AliasIndexStart).first;
    const auto *known = llvm::find_if(AliasClassNames, [name](const AliasClassName &entry) { return entry.name == name; });
    return known == std::end(AliasClassNames) ? std::nullopt : std::optional(known->aliasClass);
}

} // namespace awsm
