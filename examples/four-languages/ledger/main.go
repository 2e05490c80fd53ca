// Keeps orders. A component: what follows is the interface `ledgers` of ../wit/orders.wit, as the canonical ABI passes its values.
package main

import (
	"fmt"
	"unsafe"
)

// The cases of a price.
const (
	free = iota
	cents
	agreed
)

var kinds = [...]string{"free", "cents", "agreed"}

type order struct {
	item  string
	count uint32
	// Of the case `kind`.
	kind   uint8
	cents  uint64
	agreed string
	marks  uint8
	note   *string
}

type ledger struct {
	title  string
	orders []order
}

type sum struct {
	orders        uint32
	pieces, cents uint64
}

func (l *ledger) sum() sum {
	sum := sum{orders: uint32(len(l.orders))}
	for _, order := range l.orders {
		sum.pieces += uint64(order.count)
		sum.cents += uint64(order.count) * order.cents
	}
	return sum
}

// All of them, by what stands for them in handles.
var (
	ledgers = map[uint32]*ledger{}
	last    uint32
)

// A handle for a new ledger.
func open(l *ledger) uint32 {
	last++
	ledgers[last] = l
	return newHandle(last)
}

//go:wasmimport [export]example:orders/ledgers@1.0.0 [resource-new]ledger
func newHandle(rep uint32) uint32

//go:wasmimport [export]example:orders/ledgers@1.0.0 [resource-rep]ledger
func repOf(handle uint32) uint32

//go:wasmimport [export]example:orders/ledgers@1.0.0 [resource-drop]ledger
func drop(handle uint32)

//go:wasmexport example:orders/ledgers@1.0.0#[dtor]ledger
func destroy(rep uint32) { delete(ledgers, rep) }

//go:wasmexport example:orders/ledgers@1.0.0#[constructor]ledger
func construct(title unsafe.Pointer, length uint32) uint32 {
	defer release()
	return open(&ledger{title: text(title, length)})
}

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.title
func title(rep uint32) unsafe.Pointer {
	result := result(8)
	result.putString(0, ledgers[rep].title)
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[method]ledger.title
func afterTitle(unsafe.Pointer) { release() }

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.add
func add(
	rep uint32, item unsafe.Pointer, itemLength, count, kind uint32, centsOrWords uint64, wordsLength, marks, hasNote uint32,
	note unsafe.Pointer, noteLength uint32,
) unsafe.Pointer {
	added := order{item: text(item, itemLength), count: count, kind: uint8(kind), marks: uint8(marks)}
	switch kind {
	case cents:
		added.cents = centsOrWords
	case agreed:
		added.agreed = text(unsafe.Pointer(uintptr(centsOrWords)), wordsLength)
	}
	if hasNote == 1 {
		note := text(note, noteLength)
		added.note = &note
	}
	release()
	ledger, result := ledgers[rep], result(12)
	for i, order := range ledger.orders {
		if order.item == added.item {
			result[0] = 1
			result.putString(4, fmt.Sprintf("%q is order %d already", added.item, i+1))
			return result.pointer()
		}
	}
	ledger.orders = append(ledger.orders, added)
	result.put32(4, uint32(len(ledger.orders)))
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[method]ledger.add
func afterAdd(unsafe.Pointer) { release() }

// The size of an order, and where its fields are.
const orderSize = 48

func (l layout) putOrder(order *order) {
	l.putString(0, order.item)
	l.put32(8, order.count)
	l[16] = order.kind
	switch order.kind {
	case cents:
		l.put64(24, order.cents)
	case agreed:
		l.putString(24, order.agreed)
	}
	l[32] = order.marks
	if order.note != nil {
		l[36] = 1
		l.putString(40, *order.note)
	}
}

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.find
func find(rep uint32, item unsafe.Pointer, length uint32) unsafe.Pointer {
	wanted := text(item, length)
	release()
	result := result(8 + orderSize)
	for i := range ledgers[rep].orders {
		if order := &ledgers[rep].orders[i]; order.item == wanted {
			result[0] = 1
			result[8:].putOrder(order)
		}
	}
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[method]ledger.find
func afterFind(unsafe.Pointer) { release() }

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.orders
func orders(rep uint32) unsafe.Pointer {
	orders, result := ledgers[rep].orders, result(8)
	list := result.putList(0, len(orders), orderSize)
	for i := range orders {
		list[i*orderSize:].putOrder(&orders[i])
	}
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[method]ledger.orders
func afterOrders(unsafe.Pointer) { release() }

func (l layout) putSum(sum sum) {
	l.put32(0, sum.orders)
	l.put64(8, sum.pieces)
	l.put64(16, sum.cents)
}

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.sum
func sumOf(rep uint32) unsafe.Pointer {
	result := result(24)
	result.putSum(ledgers[rep].sum())
	return result.pointer()
}

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.split
func split(rep uint32) unsafe.Pointer {
	var parts []*ledger
	for kind, name := range kinds {
		part := &ledger{title: name}
		for _, order := range ledgers[rep].orders {
			if int(order.kind) == kind {
				part.orders = append(part.orders, order)
			}
		}
		if part.orders != nil {
			parts = append(parts, part)
		}
	}
	result := result(8)
	list := result.putList(0, len(parts), 4)
	for i, part := range parts {
		list.put32(4*i, open(part))
	}
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[method]ledger.split
func afterSplit(unsafe.Pointer) { release() }

//go:wasmimport wasi:io/streams@0.2.10 [method]output-stream.blocking-write-and-flush
func write(stream uint32, data unsafe.Pointer, length uint32, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.10 [resource-drop]output-stream
func dropStream(stream uint32)

//go:wasmimport wasi:io/error@0.2.10 [method]error.to-debug-string
func reasonOf(reason uint32, result unsafe.Pointer)

//go:wasmimport wasi:io/error@0.2.10 [resource-drop]error
func dropReason(reason uint32)

//go:wasmexport example:orders/ledgers@1.0.0#[method]ledger.sign
func sign(rep, stream uint32) unsafe.Pointer {
	// What was lent is given back before the function returns.
	defer dropStream(stream)
	sum := ledgers[rep].sum()
	line := fmt.Sprintf("Σ %d × %d = %d.%02d €\n", sum.orders, sum.pieces, sum.cents/100, sum.cents%100)
	var written [3]uint32
	write(stream, unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)), unsafe.Pointer(&written))
	result := result(16)
	if uint8(written[0]) == 0 {
		result.put64(8, uint64(len(line)))
		return result.pointer()
	}
	reason := "closed"
	if uint8(written[1]) == 0 {
		var words [2]uint32
		reasonOf(written[2], unsafe.Pointer(&words))
		reason = text(unsafe.Pointer(uintptr(words[0])), words[1])
		dropReason(written[2])
	}
	result[0] = 1
	result.putString(8, reason)
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[method]ledger.sign
func afterSign(unsafe.Pointer) { release() }

//go:wasmexport example:orders/ledgers@1.0.0#[static]ledger.close
func closeLedger(handle uint32) unsafe.Pointer {
	ledger, result := ledgers[repOf(handle)], result(32)
	result.putString(0, ledger.title)
	result[8:].putSum(ledger.sum())
	drop(handle) // which destroys it
	return result.pointer()
}

//go:wasmexport cabi_post_example:orders/ledgers@1.0.0#[static]ledger.close
func afterClose(unsafe.Pointer) { release() }

//go:wasmexport example:orders/ledgers@1.0.0#count
func count() uint32 { return uint32(len(ledgers)) }

func main() {}
