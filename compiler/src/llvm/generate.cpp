// Generates a module's code as LLVM's C interface does (LLVMTargetMachineEmitToMemoryBuffer), without passes that gain nothing for our modules.

#include "work.h"

#include "llvm-c/Core.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Pass.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace llvm;

namespace {

// LiveDebugValues finds out where the variables of a source are at each instruction. Ours are not described, only lines; it would look at all
// functions that have lines nonetheless, for 2 % of the time of a compilation. The scheduler behind register allocation orders instructions anew for
// processors that execute them in order, at 3 % of the time.
//
// Where it has to be quick, no pass is over loops: scalar evolution, which these ask, may take for ever.
class Passes final : public legacy::PassManager {
public:
    explicit Passes(bool quick) : quick(quick) {}

    void add(Pass *pass) override {
        if (pass->getPassID() == &LiveDebugValuesID || pass->getPassID() == &PostRASchedulerID ||
            (quick && pass->getPassKind() == PT_Loop))
            delete pass;
        else
            append(pass);
    }

private:
    // Passes over functions that follow each other run for one function after the other: the first of them says for which.
    void append(Pass *pass) {
        const bool isOfFunction = pass->getPassKind() == PT_Function;
        if (isOfFunction && !wasOfFunction)
            legacy::PassManager::add(awsm::createWorksOnPass());
        wasOfFunction = isOfFunction;
        legacy::PassManager::add(pass);
    }

    const bool quick;
    bool wasOfFunction = false;
};

// Adds the passes. LLVM chooses between its thorough allocator of registers and the fast one by an option of the whole process alone.
bool addPasses(TargetMachine &machine, Passes &passes, raw_pwrite_stream &out, CodeGenFileType type, bool quick) {
    static std::mutex options;
    const std::lock_guard<std::mutex> lock(options);
    cl::Option *optimize = cl::getRegisteredOptions().lookup("optimize-regalloc");
    if (quick && (!optimize || optimize->addOccurrence(0, "optimize-regalloc", "false")))
        return false;
    const bool isImpossible = machine.addPassesToEmitFile(passes, out, nullptr, type);
    if (quick)
        optimize->reset();
    return !isImpossible;
}

} // namespace

// The result is null where the target cannot generate such files.
extern "C" LLVMMemoryBufferRef awsm_generate(LLVMModuleRef module, LLVMTargetMachineRef machine, LLVMCodeGenFileType kind,
                                             bool quick) {
    SmallString<0> bytes;
    raw_svector_ostream out(bytes);
    Passes passes(quick);
    auto type = kind == LLVMAssemblyFile ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile;
    if (!addPasses(*reinterpret_cast<TargetMachine *>(machine), passes, out, type, quick))
        return nullptr;
    passes.run(*unwrap(module));
    return LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.data(), bytes.size(), "");
}
