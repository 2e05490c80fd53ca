package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// FrameHead is how many bytes stand before a message: a flag, and the length of the message.
const FrameHead = 5

// PutHead writes the head of a frame.
func PutHead(frame []byte, compressed bool) {
	frame[0] = 0
	if compressed {
		frame[0] = 1
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-FrameHead))
}

// TooLarge is a message above the limit.
type TooLarge struct{ Length, Limit int }

func (e TooLarge) Error() string {
	return fmt.Sprintf("grpc: a message of %d bytes was received, the limit is %d", e.Length, e.Limit)
}

var errFlag = errors.New("grpc: the flag of a frame is neither 0 nor 1")

// Source is where a body comes from. Its end is io.EOF.
type Source interface {
	More(into []byte) (int, error)
}

// Frames takes messages from a body.
type Frames struct {
	Room       []byte
	begin, end int
}

// Next is the next message. It is valid until Next is called again. The error is io.EOF at the end, and io.ErrUnexpectedEOF within a message.
func (f *Frames) Next(limit int, from Source) (message []byte, compressed bool, err error) {
	if err := f.fill(FrameHead, from); err != nil {
		return nil, false, err
	}
	head := f.Room[f.begin:]
	if head[0] > 1 {
		return nil, false, errFlag
	}
	compressed = head[0] == 1
	length := int64(binary.BigEndian.Uint32(head[1:]))
	if length > int64(limit) {
		return nil, false, TooLarge{int(length), limit}
	}
	f.begin += FrameHead
	if err := f.fill(int(length), from); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, false, err
	}
	message = f.Room[f.begin : f.begin+int(length)]
	f.begin += int(length)
	return message, compressed, nil
}

// fill reads until there are so many bytes.
func (f *Frames) fill(count int, from Source) error {
	if f.begin == f.end {
		f.begin, f.end = 0, 0
	}
	if count > len(f.Room)-f.begin {
		room := f.Room
		if count > len(room) {
			room = make([]byte, count)
		}
		f.end = copy(room, f.Room[f.begin:f.end])
		f.begin, f.Room = 0, room
	}
	for f.end-f.begin < count {
		got, err := from.More(f.Room[f.end:])
		f.end += got
		if err != nil && f.end-f.begin < count {
			if err == io.EOF && f.end > f.begin {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// IsEmpty tells whether all that was read is taken.
func (f *Frames) IsEmpty() bool { return f.begin == f.end }
