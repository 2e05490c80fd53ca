// Generates a module's code as LLVM's C interface does (LLVMTargetMachineEmitToMemoryBuffer), without passes that gain nothing for our modules.

#include "llvm-c/Core.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Pass.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace {

// LiveDebugValues finds out where the variables of a source are at each instruction. Ours are not described, only lines; it would look at all
// functions that have lines nonetheless, for 2 % of the time of a compilation. The scheduler behind register allocation orders instructions anew for
// processors that execute them in order, at 3 % of the time.
class Passes final : public legacy::PassManager {
public:
    void add(Pass *pass) override {
        if (pass->getPassID() == &LiveDebugValuesID || pass->getPassID() == &PostRASchedulerID)
            delete pass;
        else
            legacy::PassManager::add(pass);
    }
};

} // namespace

// The result is null where the target cannot generate such files.
extern "C" LLVMMemoryBufferRef awsm_generate(LLVMModuleRef module, LLVMTargetMachineRef machine, LLVMCodeGenFileType kind) {
    SmallString<0> bytes;
    raw_svector_ostream out(bytes);
    Passes passes;
    auto type = kind == LLVMAssemblyFile ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile;
    if (reinterpret_cast<TargetMachine *>(machine)->addPassesToEmitFile(passes, out, nullptr, type))
        return nullptr;
    passes.run(*unwrap(module));
    return LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.data(), bytes.size(), "");
}
