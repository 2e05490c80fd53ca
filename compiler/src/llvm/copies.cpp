// Finds the copies of which an unrolled loop consists.

#include "copies.h"

#include "llvm/IR/DataLayout.h"

#include <deque>

using namespace llvm;

namespace {

// Pairs of values compared for one loop and one number of copies. Commutative operations are tried in both orders, so that without a limit long
// chains of them that are almost alike would take exponential time.
constexpr unsigned PairsMax = 4096;

} // namespace

namespace awsm {

bool Copies::find() {
    if (!distributeStores())
        return false;
    for (PHINode &phi : block.phis())
        if (!stepping(&phi) && !phis.contains(&phi) && !distributeChain(&phi))
            return false;
    if (!followStates() || !hasEveryAccess())
        return false;
    for (Instruction &instruction : block)
        if (members.contains(&instruction))
            ordered.push_back(&instruction);
    return keepsOrder();
}

const SCEVAddRecExpr *Copies::stepping(Value *value) const {
    if (!evolution.isSCEVable(value->getType()))
        return nullptr;
    auto *steps = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(value));
    return steps && steps->getLoop() == &loop && steps->isAffine() ? steps : nullptr;
}

Value *Copies::ofLast(Value *value) const {
    for (Instruction *member : ordered)
        if (image(member, count - 1) == value)
            return member;
    return nullptr;
}

void Copies::enter(Value *first, Value *other, unsigned copy) {
    images[copy][first] = other;
    entries.emplace_back(copy, first);
}

void Copies::rollBack(const Mark &mark) {
    for (; entries.size() > mark.entries; entries.pop_back())
        images[entries.back().first].erase(entries.back().second);
    while (phis.size() > mark.phis)
        phis.pop_back();
    while (members.size() > mark.body)
        members.pop_back();
}

// Whether `other` is in a copy what `first` is in copy 0.
bool Copies::match(Value *first, Value *other, unsigned copy) {
    if (++pairs > PairsMax)
        return false;
    if (loop.isLoopInvariant(first))
        return first == other;
    if (Value *known = images[copy].lookup(first))
        return known == other;
    if (first->getType() != other->getType())
        return false;
    if (const SCEVAddRecExpr *steps = stepping(first)) {
        if (!matchStep(steps, other, copy))
            return false;
        enter(first, other, copy);
        return true;
    }
    if (auto *phi = dyn_cast<PHINode>(first)) {
        enter(phi, other, copy);
        phis.insert(phi);
        return true;
    }
    auto *one = cast<Instruction>(first);
    auto *two = dyn_cast<Instruction>(other);
    if (!two || two->getParent() != &block || isa<PHINode>(two) || !one->isSameOperationAs(two) ||
        one->getMetadata(LLVMContext::MD_tbaa) != two->getMetadata(LLVMContext::MD_tbaa))
        return false;
    enter(one, two, copy);
    members.insert(one);
    return matchOperands(one, two, copy);
}

bool Copies::matchOperands(Instruction *first, Instruction *other, unsigned copy) {
    auto matchInOrder = [&](unsigned a, unsigned b) {
        return match(first->getOperand(0), other->getOperand(a), copy) && match(first->getOperand(1), other->getOperand(b), copy);
    };
    if (first->isCommutative() && first->getNumOperands() == 2) {
        const Mark mark{entries.size(), phis.size(), members.size()};
        if (matchInOrder(0, 1))
            return true;
        rollBack(mark);
        return matchInOrder(1, 0);
    }
    for (unsigned i = 0, end = first->getNumOperands(); i != end; ++i)
        if (!match(first->getOperand(i), other->getOperand(i), copy))
            return false;
    return true;
}

// Whether a value is what one of copy 0 will be in as many steps of F as there are copies between them.
bool Copies::matchStep(const SCEVAddRecExpr *first, Value *other, unsigned copy) {
    const SCEV *whole = first->getStepRecurrence(evolution);
    const SCEV *distance = evolution.getMinusSCEV(evolution.getSCEV(other), first);
    if (isa<SCEVCouldNotCompute>(distance) || !evolution.isLoopInvariant(distance, &loop))
        return false;
    const SCEV *&part = steps[whole];
    if (!part) {
        if (copy != 1)
            return false;
        if (evolution.getMulExpr(evolution.getConstant(whole->getType(), count), distance) != whole)
            return false;
        part = distance;
    }
    return evolution.getMulExpr(evolution.getConstant(whole->getType(), copy), part) == distance;
}

// Stores are the same number in each copy, in the same order.
bool Copies::distributeStores() {
    SmallVector<Instruction *, 16> stores;
    for (Instruction &instruction : block)
        if (isa<StoreInst>(instruction))
            stores.push_back(&instruction);
    const size_t each = stores.size() / count;
    if (each * count != stores.size())
        return false;
    for (unsigned copy = 1; copy < count; ++copy)
        for (size_t i = 0; i < each; ++i)
            if (!match(stores[i], stores[copy * each + i], copy))
                return false;
    return true;
}

// The way from a state to its next value is the same number of instructions in each copy.
bool Copies::distributeChain(PHINode *state) {
    DenseMap<Instruction *, Instruction *> users; // on the way from an instruction to the next value
    auto *end = dyn_cast<Instruction>(latched(state));
    if (!end || end->getParent() != &block || isa<PHINode>(end))
        return false;
    std::deque<Instruction *> pending{end};
    users[end] = nullptr;
    while (!pending.empty() && !users.contains(state)) {
        Instruction *user = pending.front();
        pending.pop_front();
        for (Value *operand : user->operands()) {
            auto *made = dyn_cast<Instruction>(operand);
            bool onTheWay = made && made->getParent() == &block && (made == state || !isa<PHINode>(made));
            if (onTheWay && users.try_emplace(made, user).second)
                pending.push_back(made);
        }
    }
    if (!users.contains(state))
        return false;
    SmallVector<Instruction *, 16> chain;
    for (Instruction *link = users.lookup(state); link; link = users.lookup(link))
        chain.push_back(link);
    const size_t each = chain.size() / count;
    if (each * count != chain.size())
        return false;
    for (unsigned copy = 1; copy < count; ++copy)
        enter(state, chain[copy * each - 1], copy);
    phis.insert(state);
    return true;
}

// What a copy leaves in a state is what F makes of what it found there.
bool Copies::followStates() {
    for (unsigned i = 0; i < phis.size(); ++i) { // grows
        PHINode *state = phis[i];
        for (unsigned copy = 1; copy < count; ++copy) {
            Value *left = copy + 1 < count ? image(state, copy + 1) : latched(state);
            if (!match(next(state), left, copy))
                return false;
        }
    }
    return true;
}

bool Copies::hasEveryAccess() const {
    SmallPtrSet<Value *, 32> found;
    for (Instruction *member : members)
        for (unsigned copy = 0; copy < count; ++copy)
            found.insert(image(member, copy));
    if (found.contains(nullptr))
        return false;
    return all_of(block, [&](Instruction &i) { return !i.mayReadOrWriteMemory() || found.contains(&i); });
}

// Whether accesses may be made copy after copy.
bool Copies::keepsOrder() const {
    DenseMap<Value *, unsigned> places;
    for (Instruction &instruction : block)
        places[&instruction] = places.size();
    SmallVector<Instruction *, 32> accesses;
    for (unsigned copy = 0; copy < count; ++copy)
        for (Instruction *member : ordered)
            if (member->mayReadOrWriteMemory())
                accesses.push_back(cast<Instruction>(image(member, copy)));
    for (size_t later = 1; later < accesses.size(); ++later)
        for (size_t earlier = 0; earlier < later; ++earlier)
            if (places[accesses[earlier]] > places[accesses[later]] && !isApart(accesses[earlier], accesses[later]))
                return false;
    return true;
}

// Whether it does not matter which of two accesses of an iteration comes first.
bool Copies::isApart(Instruction *one, Instruction *other) const {
    if (isa<LoadInst>(one) && isa<LoadInst>(other))
        return true;
    auto address = [&](Instruction *access) { return evolution.getSCEV(getLoadStorePointerOperand(access)); };
    auto *distance = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(address(other), address(one)));
    if (!distance)
        return false;
    const DataLayout &layout = block.getDataLayout();
    auto bytes = [&](Instruction *access) { return int64_t(layout.getTypeStoreSize(getLoadStoreType(access)).getFixedValue()); };
    const int64_t behind = distance->getAPInt().getSExtValue();
    return behind >= bytes(one) || behind <= -bytes(other);
}

} // namespace awsm
