package main

import (
	"encoding/binary"
	"runtime/debug"
	"unsafe"
)

// Memory that is passed to other components or comes from them, until `release`: the garbage collector does not see their pointers.
var kept []any

// Where functions leave results that have no place in a register.
var area [8]uint64

// WASI's adapter asks for memory when Go's runtime makes its first calls, before there is a heap.
var (
	early    [3 * 65536 / 8]uint64
	earlyEnd uintptr
	hasHeap  bool
)

func init() {
	hasHeap = true
	// A collection asks for the wall clock. Where it begins in `realloc`, that would trap: the adapter knows no wall clock of its own, and may not ask the
	// host. All memory is thrown away after the request.
	debug.SetGCPercent(-1)
}

// Go's allocator looks at the monotonic clock, but what is called for memory may call nothing of the host: the adapter answers with the time that it knows.
//
//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func pauseClock(isPaused bool)

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	if !hasHeap {
		// A trap, if there is too little.
		end := earlyEnd + uintptr(size+7)/8
		block := early[earlyEnd:end]
		earlyEnd = end
		return unsafe.Pointer(unsafe.SliceData(block))
	}
	pauseClock(true)
	defer pauseClock(false)
	// Of words, so that it is aligned for everything.
	block := make([]uint64, (size+7)/8+1)
	kept = append(kept, block)
	copy(bytes(unsafe.Pointer(&block[0]), size), bytes(old, oldSize))
	return unsafe.Pointer(&block[0])
}

func release() { clear(kept); kept = kept[:0] }

func bytes(at unsafe.Pointer, length uint32) []byte { return unsafe.Slice((*byte)(at), length) }

// A string from another component.
func text(at unsafe.Pointer, length uint32) string { return string(bytes(at, length)) }

// A value in memory as the canonical ABI lays it out.
type layout []byte

// The place for a result.
func result(size uint32) layout {
	clear(area[:])
	return bytes(unsafe.Pointer(&area), size)
}

func (l layout) pointer() unsafe.Pointer { return unsafe.Pointer(&l[0]) }

func (l layout) put32(at int, value uint32) { binary.LittleEndian.PutUint32(l[at:], value) }

func (l layout) put64(at int, value uint64) { binary.LittleEndian.PutUint64(l[at:], value) }

// A string or a list of `length` elements.
func (l layout) putPair(at int, pointer unsafe.Pointer, length int) {
	l.put32(at, uint32(uintptr(pointer)))
	l.put32(at+4, uint32(length))
}

func (l layout) putString(at int, value string) {
	kept = append(kept, value)
	l.putPair(at, unsafe.Pointer(unsafe.StringData(value)), len(value))
}

// A list of `length` elements of `size` bytes, which are to be filled.
func (l layout) putList(at, length, size int) layout {
	list := realloc(nil, 0, 8, uint32(length*size))
	l.putPair(at, list, length)
	return bytes(list, uint32(length*size))
}
