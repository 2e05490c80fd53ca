// What the compilation of functions costs: which function a thread works on, and what is left out where one is large.

#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Pass.h"

namespace awsm {

// Says that this thread works on the function from now on.
void worksOn(const llvm::Function &function);

// A pass that does nothing but that.
llvm::FunctionPass *createWorksOnPass();

// Makes passes say on which function they work, and leaves out of large functions what takes too long there.
void watchPasses(llvm::PassInstrumentationCallbacks &callbacks);

} // namespace awsm
