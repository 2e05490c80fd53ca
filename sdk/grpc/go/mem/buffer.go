// Package mem has buffers that are counted and used again, for codecs that want them.
package mem

import (
	"io"
	"sync/atomic"
)

// BufferPool has byte slices to use again.
type BufferPool interface {
	Get(length int) *[]byte
	Put(*[]byte)
}

// Buffer is bytes whose users are counted.
type Buffer interface {
	// ReadOnlyData must not be changed, nor used after Free.
	ReadOnlyData() []byte
	// Ref counts one more user.
	Ref()
	// Free counts one less.
	Free()
	Len() int
	// Slice shares the bytes, and counts as a user.
	Slice(start, end int) Buffer

	read(into []byte) (int, Buffer)
	split(at int) (left, right Buffer)
}

// smallest is where pooling begins to pay.
const smallest = 1 << 10

// IsBelowBufferPoolingThreshold tells what is too small to be pooled.
func IsBelowBufferPoolingThreshold(size int) bool { return size <= smallest }

// SliceBuffer is bytes whose users are not counted.
type SliceBuffer []byte

func (s SliceBuffer) ReadOnlyData() []byte        { return s }
func (s SliceBuffer) Ref()                        {}
func (s SliceBuffer) Free()                       {}
func (s SliceBuffer) Len() int                    { return len(s) }
func (s SliceBuffer) Slice(start, end int) Buffer { return s[start:end] }

func (s SliceBuffer) read(into []byte) (int, Buffer) {
	count := copy(into, s)
	if count == len(s) {
		return count, nil
	}
	return count, s[count:]
}

func (s SliceBuffer) split(at int) (left, right Buffer) { return s[:at], s[at:] }

// origin is what goes back to a pool when the last user is gone.
type origin struct {
	users atomic.Int32
	data  *[]byte
	pool  BufferPool
}

type counted struct {
	bytes  []byte
	origin *origin
}

// NewBuffer has one user. The bytes go to the pool, if there is one, when it is gone.
func NewBuffer(data *[]byte, pool BufferPool) Buffer {
	if pool == nil || IsBelowBufferPoolingThreshold(cap(*data)) {
		return SliceBuffer(*data)
	}
	from := &origin{data: data, pool: pool}
	from.users.Store(1)
	return &counted{*data, from}
}

// Copy has bytes of its own, from the pool.
func Copy(data []byte, pool BufferPool) Buffer {
	if pool == nil || IsBelowBufferPoolingThreshold(len(data)) {
		return SliceBuffer(append([]byte(nil), data...))
	}
	room := pool.Get(len(data))
	copy(*room, data)
	return NewBuffer(room, pool)
}

func (b *counted) ReadOnlyData() []byte { return b.bytes }

func (b *counted) Ref() { b.origin.users.Add(1) }

func (b *counted) Free() {
	if b.origin.users.Add(-1) == 0 {
		b.origin.pool.Put(b.origin.data)
	}
}

func (b *counted) Len() int { return len(b.bytes) }

func (b *counted) Slice(start, end int) Buffer {
	b.Ref()
	return &counted{b.bytes[start:end], b.origin}
}

func (b *counted) read(into []byte) (int, Buffer) {
	count := copy(into, b.bytes)
	if count == len(b.bytes) {
		b.Free()
		return count, nil
	}
	b.bytes = b.bytes[count:]
	return count, b
}

func (b *counted) split(at int) (left, right Buffer) {
	b.Ref()
	return &counted{b.bytes[:at], b.origin}, &counted{b.bytes[at:], b.origin}
}

// ReadUnsafe reads from a buffer and has what is left of it; nil, when nothing is. The buffer itself must not be used any more.
func ReadUnsafe(dst []byte, buf Buffer) (int, Buffer) { return buf.read(dst) }

// SplitUnsafe has two buffers in place of one, which must not be used any more.
func SplitUnsafe(buf Buffer, n int) (left, right Buffer) { return buf.split(n) }

// BufferSlice is buffers that follow each other.
type BufferSlice []Buffer

// Len is the number of bytes.
func (s BufferSlice) Len() int {
	length := 0
	for _, buffer := range s {
		length += buffer.Len()
	}
	return length
}

// Ref counts one more user of each.
func (s BufferSlice) Ref() {
	for _, buffer := range s {
		buffer.Ref()
	}
}

// Free counts one less of each.
func (s BufferSlice) Free() {
	for _, buffer := range s {
		buffer.Free()
	}
}

// CopyTo copies what fits.
func (s BufferSlice) CopyTo(dst []byte) int {
	done := 0
	for _, buffer := range s {
		done += copy(dst[done:], buffer.ReadOnlyData())
	}
	return done
}

// Materialize copies all into one slice.
func (s BufferSlice) Materialize() []byte {
	all := make([]byte, s.Len())
	s.CopyTo(all)
	return all
}

// MaterializeToBuffer copies all into one buffer; where it is one already, that has one more user.
func (s BufferSlice) MaterializeToBuffer(pool BufferPool) Buffer {
	if len(s) == 1 {
		s[0].Ref()
		return s[0]
	}
	length := s.Len()
	if length == 0 {
		return SliceBuffer(nil)
	}
	room := pool.Get(length)
	s.CopyTo(*room)
	return NewBuffer(room, pool)
}

// Reader reads all. It counts as a user until Close.
func (s BufferSlice) Reader() *Reader {
	r := &Reader{}
	s.Ref()
	r.left = s
	r.length = s.Len()
	return r
}

// Reader reads buffers, and frees what it has read.
type Reader struct {
	left   BufferSlice
	first  int // bytes of the first that are read
	length int
}

// Remaining is the number of bytes that are left.
func (r *Reader) Remaining() int { return r.length }

// Reset reads others.
func (r *Reader) Reset(s BufferSlice) {
	s.Ref()
	r.left.Free()
	r.left, r.first, r.length = s, 0, s.Len()
}

// Close frees what is left.
func (r *Reader) Close() error {
	r.left.Free()
	r.left, r.first, r.length = nil, 0, 0
	return nil
}

func (r *Reader) advance(count int) {
	r.first += count
	r.length -= count
	for len(r.left) > 0 && r.first == r.left[0].Len() {
		r.left[0].Free()
		r.left, r.first = r.left[1:], 0
	}
}

// Read is that of io.Reader.
func (r *Reader) Read(buf []byte) (n int, _ error) {
	if r.length == 0 {
		return 0, io.EOF
	}
	for n < len(buf) && r.length > 0 {
		r.advance(0)
		count := copy(buf[n:], r.left[0].ReadOnlyData()[r.first:])
		r.advance(count)
		n += count
	}
	return n, nil
}

// ReadByte is that of io.ByteReader.
func (r *Reader) ReadByte() (byte, error) {
	var one [1]byte
	_, err := r.Read(one[:])
	return one[0], err
}

// Discard leaves bytes out.
func (r *Reader) Discard(n int) (discarded int, err error) {
	for discarded < n && r.length > 0 {
		r.advance(0)
		count := min(n-discarded, r.left[0].Len()-r.first)
		r.advance(count)
		discarded += count
	}
	if discarded < n {
		return discarded, io.EOF
	}
	return discarded, nil
}

// Peek adds the next n bytes to res, without reading them.
func (r *Reader) Peek(n int, res [][]byte) ([][]byte, error) {
	if n > r.length {
		return res, io.EOF
	}
	from := r.first
	for _, buffer := range r.left {
		if n == 0 {
			break
		}
		bytes := buffer.ReadOnlyData()[from:]
		bytes = bytes[:min(n, len(bytes))]
		if len(bytes) > 0 {
			res = append(res, bytes)
		}
		n -= len(bytes)
		from = 0
	}
	return res, nil
}

type writer struct {
	buffers *BufferSlice
	pool    BufferPool
}

// NewWriter adds a buffer for each write.
func NewWriter(buffers *BufferSlice, pool BufferPool) io.Writer { return &writer{buffers, pool} }

func (w *writer) Write(bytes []byte) (int, error) {
	*w.buffers = append(*w.buffers, Copy(bytes, w.pool))
	return len(bytes), nil
}

const piece = 32 << 10

// ReadAll reads to the end.
func ReadAll(r io.Reader, pool BufferPool) (BufferSlice, error) {
	var all BufferSlice
	for {
		room := pool.Get(piece)
		count, err := io.ReadFull(r, *room)
		if count > 0 {
			*room = (*room)[:count]
			all = append(all, NewBuffer(room, pool))
		} else {
			pool.Put(room)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}
