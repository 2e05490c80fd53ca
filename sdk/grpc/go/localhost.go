package grpc

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"time"
)

// A function has no file /etc/hosts and no server of names, and programs listen on localhost. So this resolver knows that name, and no other.

// localhost answers queries of names in this process.
type localhost struct{ answer bytes.Buffer }

func (l *localhost) Read(into []byte) (int, error)    { return l.answer.Read(into) }
func (l *localhost) Close() error                     { return nil }
func (l *localhost) LocalAddr() net.Addr              { return here.LocalAddr }
func (l *localhost) RemoteAddr() net.Addr             { return here.Addr }
func (l *localhost) SetDeadline(time.Time) error      { return nil }
func (l *localhost) SetReadDeadline(time.Time) error  { return nil }
func (l *localhost) SetWriteDeadline(time.Time) error { return nil }

// Write takes a query behind its length, as TCP has it.
func (l *localhost) Write(query []byte) (int, error) {
	const prefix, head = 2, 12
	if len(query) >= prefix+head {
		if answer := answerName(query[prefix:]); answer != nil {
			l.answer.Write(binary.BigEndian.AppendUint16(nil, uint16(len(answer))))
			l.answer.Write(answer)
		}
	}
	return len(query), nil
}

// answerName answers a query of RFC 1035: { id, flags, counts of questions, answers, authorities and more: u16 each }, then the question: labels behind
// their lengths, type, class.
func answerName(query []byte) []byte {
	const head, typeA, noSuchName = 12, 1, 3
	var labels []string
	at := head
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end > len(query) {
			return nil
		}
		labels = append(labels, string(query[at+1:end]))
		at = end
	}
	at += 1
	if at+4 > len(query) || len(labels) == 0 {
		return nil
	}
	question := query[head : at+4]
	isLocal := strings.EqualFold(labels[len(labels)-1], "localhost")
	isAddress := binary.BigEndian.Uint16(query[at:]) == typeA
	// A response that is authoritative, to a query whose recursion is available.
	flags, answers := uint16(0x8580), uint16(0)
	if !isLocal {
		flags |= noSuchName
	} else if isAddress {
		answers = 1
	}
	answer := append([]byte(nil), query[:2]...)
	for _, number := range [...]uint16{flags, 1, answers, 0, 0} {
		answer = binary.BigEndian.AppendUint16(answer, number)
	}
	answer = append(answer, question...)
	if answers > 0 {
		// The name is the question's; type A, class IN, an hour, 4 bytes.
		answer = append(answer, 0xc0, head, 0, typeA, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 127, 0, 0, 1)
	}
	return answer
}
