// Says on which function each thread works, for the thread that looks at the clock meanwhile (`watch.rs`), and leaves passes out of functions
// in which their time grows with the square of the function. NOTES.md has what was measured.

#include "shared.h"
#include "work.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/LazyCallGraph.h"
#include "llvm/Analysis/LoopInfo.h"

#include <atomic>
#include <cstdint>

using namespace llvm;

// Basic blocks up to which a function is vectorised in straight lines, its memory is numbered, its loops are unswitched and unrolled, and values
// and jumps are followed through its branches.
constexpr unsigned ThoroughBlocksMax = 512;

// Where this thread says the function's number, if it is to be known.
static thread_local std::atomic<uint64_t> *place = nullptr;
static thread_local const Function *latest = nullptr;

// The number of the function to which a symbol belongs: `wasm[7]::name`, `wasm[1:7]::name`.
static uint64_t numberOf(StringRef symbol) {
    uint32_t module = 0, index = 0;
    if (!symbol.consume_front(awsm::FunctionSymbolStart) || symbol.consumeInteger(10, index))
        return awsm::NoFunction;
    if (symbol.consume_front(awsm::SymbolModuleEnd)) {
        module = index;
        if (symbol.consumeInteger(10, index))
            return awsm::NoFunction;
    }
    if (!symbol.starts_with(awsm::FunctionSymbolIndexEnd))
        return awsm::NoFunction;
    return uint64_t(module) << awsm::FunctionNumberModuleShift | index;
}

// The function to which a unit of IR belongs; null where there are several.
static const Function *functionOf(const Any &unit) {
    if (const auto *function = any_cast<const Function *>(&unit))
        return *function;
    if (const auto *loop = any_cast<const Loop *>(&unit))
        return (*loop)->getHeader()->getParent();
    if (const auto *component = any_cast<const LazyCallGraph::SCC *>(&unit))
        return &(*component)->begin()->getFunction();
    return nullptr;
}

static unsigned blocksMaxOf(StringRef pass) {
    return StringSwitch<unsigned>(pass)
        .Cases({"GVNPass", "CorrelatedValuePropagationPass", "JumpThreadingPass"}, ThoroughBlocksMax)
        .Cases({"SimpleLoopUnswitchPass", "LoopFullUnrollPass", "LoopUnrollPass", "awsm::SlpPass"}, ThoroughBlocksMax)
        .Default(0);
}

namespace awsm {

void worksOn(const Function &function) {
    if (!place || latest == &function)
        return;
    latest = &function;
    // The reader reads nothing else that was written before.
    place->store(numberOf(function.getName()), std::memory_order_relaxed);
}

void watchPasses(PassInstrumentationCallbacks &callbacks) {
    auto note = [](StringRef, Any unit) {
        if (const Function *function = functionOf(unit))
            worksOn(*function);
    };
    callbacks.registerBeforeNonSkippedPassCallback(note);
    callbacks.registerBeforeAnalysisCallback(note);
    callbacks.registerShouldRunOptionalPassCallback([](StringRef pass, Any unit) {
        const unsigned blocksMax = blocksMaxOf(pass);
        const Function *function = blocksMax ? functionOf(unit) : nullptr;
        return !function || !hasNItemsOrMore(*function, blocksMax + 1);
    });
}

} // namespace awsm

namespace {

struct WorksOnPass final : FunctionPass {
    static char ID;
    WorksOnPass() : FunctionPass(ID) {}
    StringRef getPassName() const override { return "awsm: which function"; }
    void getAnalysisUsage(AnalysisUsage &usage) const override { usage.setPreservesAll(); }
    bool runOnFunction(Function &function) override {
        awsm::worksOn(function);
        return false;
    }
};

char WorksOnPass::ID = 0;

} // namespace

FunctionPass *awsm::createWorksOnPass() { return new WorksOnPass(); }

// Where this thread says on which function it works; null where it is not read any more.
extern "C" void awsm_say_function(std::atomic<uint64_t> *wanted) {
    place = wanted;
    latest = nullptr;
    if (wanted)
        wanted->store(awsm::NoFunction, std::memory_order_relaxed);
}
