package sledge

import (
	"encoding/binary"
	"unsafe"
)

// pointer is the address of a buffer, as the host takes it.
type pointer = unsafe.Pointer

// firstRoom is how many bytes a first try has room for.
const firstRoom = 4 << 10

// nothing is the length of a value that does not exist.
const nothing = 1<<32 - 1

func at(bytes []byte) pointer { return pointer(unsafe.SliceData(bytes)) }

// text calls write, which returns a length and writes the part that fits, until all fits.
func text(write func(at pointer, room uint32) int32) ([]byte, error) {
	buffer := make([]byte, firstRoom)
	for {
		length, err := checked(write(at(buffer), uint32(len(buffer))))
		if err != nil || length <= len(buffer) {
			return buffer[:length], err
		}
		buffer = make([]byte, length)
	}
}

// list is rows of addresses and numbers, and what they point to.
type list struct {
	data []byte
	rows []byte
}

// newList has room for data of that length. It is not inlined, so the data lies on the heap: the garbage collector moves nothing there, while a stack
// moves when it grows.
//
//go:noinline
func newList(length int) *list { return &list{data: make([]byte, 0, length+1)} }

func (l *list) number32(number uint32) { l.rows = binary.LittleEndian.AppendUint32(l.rows, number) }

func (l *list) number64(number uint64) { l.rows = binary.LittleEndian.AppendUint64(l.rows, number) }

// bytes adds the address and length of a copy.
func (l *list) bytes(bytes string) {
	begin := len(l.data)
	l.data = append(l.data, bytes...)
	l.number32(uint32(uintptr(at(l.data)) + uintptr(begin)))
	l.number32(uint32(len(bytes)))
}

// next takes a row behind its length from the front.
func next(rows []byte) (row, rest []byte, ok bool) {
	if len(rows) < 4 {
		return nil, nil, false
	}
	length := uint64(binary.LittleEndian.Uint32(rows))
	if uint64(len(rows)-4) < length {
		return nil, nil, false
	}
	return rows[4 : 4+length], rows[4+length:], true
}

func fields(rows []byte) []Field {
	var all []Field
	for {
		name, rest, ok := next(rows)
		if !ok {
			return all
		}
		value, rest, ok := next(rest)
		if !ok {
			return all
		}
		all, rows = append(all, Field{string(name), string(value)}), rest
	}
}

func appendRow(rows []byte, row string) []byte {
	return append(binary.LittleEndian.AppendUint32(rows, uint32(len(row))), row...)
}
