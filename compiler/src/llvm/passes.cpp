// Runs pipelines that may name our own passes beside LLVM's. The C interface has no callbacks for that.

#include "passes.h"
#include "shared.h"
#include "work.h"

#include "llvm-c/Core.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

static bool addFunctionPass(StringRef name, FunctionPassManager &passes) {
    if (name == awsm::ImpliedChecksPassName)
        passes.addPass(awsm::ImpliedChecksPass());
    else if (name == awsm::NeighbourChecksPassName)
        passes.addPass(awsm::NeighbourChecksPass());
    else if (name == awsm::LoopChecksPassName)
        passes.addPass(awsm::LoopChecksPass());
    else if (name == awsm::AffinePassName)
        passes.addPass(awsm::AffinePass());
    else if (name == awsm::RerollPassName)
        passes.addPass(awsm::RerollPass());
    else if (name == awsm::SlpPassName)
        passes.addPass(awsm::SlpPass());
    else
        return false;
    return true;
}

static Error run(Module &module, TargetMachine &machine, StringRef pipeline, bool verifyEach) {
    PassInstrumentationCallbacks callbacks;
    PassBuilder builder(&machine, PipelineTuningOptions(), std::nullopt, &callbacks);
    builder.registerPipelineParsingCallback([](StringRef name, FunctionPassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
        return addFunctionPass(name, passes);
    });
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    builder.registerLoopAnalyses(loops);
    builder.registerFunctionAnalyses(functions);
    builder.registerCGSCCAnalyses(components);
    builder.registerModuleAnalyses(modules);
    builder.crossRegisterProxies(loops, functions, components, modules);
    StandardInstrumentations instrumentations(module.getContext(), /*DebugLogging=*/false, verifyEach);
    instrumentations.registerCallbacks(callbacks, &modules);
    awsm::watchPasses(callbacks);
    ModulePassManager passes;
    if (Error error = builder.parsePassPipeline(passes, pipeline))
        return error;
    passes.run(module, modules);
    return Error::success();
}

// The result is null, or a message that LLVMDisposeMessage frees.
extern "C" char *awsm_run_passes(LLVMModuleRef module, LLVMTargetMachineRef machine, const char *pipeline, bool verifyEach) {
    Error error = run(*unwrap(module), *reinterpret_cast<TargetMachine *>(machine), pipeline, verifyEach);
    return error ? LLVMCreateMessage(toString(std::move(error)).c_str()) : nullptr;
}
