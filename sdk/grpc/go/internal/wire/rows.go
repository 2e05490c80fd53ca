// Package wire has the forms that calls have on the way: rows of headers, frames of messages, text in headers.
package wire

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// AppendRow adds a name or a value.
func AppendRow(rows []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(rows, uint32(len(text))), text...)
}

// AppendField adds name and value.
func AppendField(rows []byte, name, value string) []byte {
	return AppendRow(AppendRow(rows, name), value)
}

// NextField takes a field from the front. It is false at the end, and at what is no field.
func NextField(rows []byte) (name, value, rest []byte, ok bool) {
	if name, rest, ok = nextRow(rows); ok {
		value, rest, ok = nextRow(rest)
	}
	return name, value, rest, ok
}

func nextRow(rows []byte) (row, rest []byte, ok bool) {
	if len(rows) < 4 {
		return nil, nil, false
	}
	length := uint64(binary.LittleEndian.Uint32(rows))
	if uint64(len(rows)-4) < length {
		return nil, nil, false
	}
	return rows[4 : 4+length], rows[4+length:], true
}

// IsReserved tells names that belong to the protocol, or to connections: programs cannot set them.
func IsReserved(name string) bool {
	if strings.HasPrefix(name, ":") {
		return true
	}
	switch name {
	case "content-type", "user-agent", "grpc-message-type", "grpc-encoding", "grpc-message", "grpc-status", "grpc-timeout", "te",
		"grpc-status-details-bin", "connection", "content-length", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection", "host":
		return true
	}
	return false
}

// hides tells names that programs do not see as metadata.
func hides(name string) bool {
	switch name {
	case "grpc-message-type", "grpc-encoding", "grpc-message", "grpc-status", "grpc-timeout", "te", "grpc-status-details-bin":
		return true
	}
	return false
}

const binarySuffix = "-bin"

// Encode is a value as it is sent.
func Encode(name, value string) string {
	if strings.HasSuffix(name, binarySuffix) {
		return base64.RawStdEncoding.EncodeToString([]byte(value))
	}
	return value
}

// DecodeBinary takes what a -bin header has, with padding or without.
func DecodeBinary(value []byte) ([]byte, error) {
	for len(value) > 0 && value[len(value)-1] == '=' {
		value = value[:len(value)-1]
	}
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(value)))
	length, err := base64.RawStdEncoding.Decode(decoded, value)
	return decoded[:length], err
}

// IsValid tells whether metadata can be sent.
func IsValid(name, value string) bool {
	if name == "" {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	if strings.HasSuffix(name, binarySuffix) {
		return true
	}
	for i := 0; i < len(value); i++ {
		if value[i] < 0x20 || value[i] > 0x7e {
			return false
		}
	}
	return true
}

// Metadata makes a map of rows.
func Metadata(rows []byte) map[string][]string {
	md := map[string][]string{}
	for {
		name, value, rest, ok := NextField(rows)
		if !ok {
			return md
		}
		rows = rest
		if hides(string(name)) {
			continue
		}
		key := string(name)
		if key == "host" {
			key = ":authority"
		}
		if strings.HasSuffix(key, binarySuffix) {
			decoded, err := DecodeBinary(value)
			if err != nil {
				continue
			}
			value = decoded
		}
		md[key] = append(md[key], string(value))
	}
}

const hexadecimal = "0123456789ABCDEF"

// EncodeMessage is a status' message as grpc-message has it.
func EncodeMessage(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	plain := func(c byte) bool { return c >= 0x20 && c <= 0x7e && c != '%' }
	at := 0
	for at < len(message) && plain(message[at]) {
		at++
	}
	if at == len(message) {
		return message
	}
	encoded := append(make([]byte, 0, 2*len(message)), message[:at]...)
	for ; at < len(message); at++ {
		if c := message[at]; plain(c) {
			encoded = append(encoded, c)
		} else {
			encoded = append(encoded, '%', hexadecimal[c>>4], hexadecimal[c&15])
		}
	}
	return string(encoded)
}

// DecodeMessage takes what cannot be decoded as it is.
func DecodeMessage(message []byte) string {
	decoded := make([]byte, 0, len(message))
	for at := 0; at < len(message); at++ {
		if message[at] == '%' && at+2 < len(message) {
			high, low := strings.IndexByte(hexadecimal, upper(message[at+1])), strings.IndexByte(hexadecimal, upper(message[at+2]))
			if high >= 0 && low >= 0 {
				decoded = append(decoded, byte(high<<4|low))
				at += 2
				continue
			}
		}
		decoded = append(decoded, message[at])
	}
	return string(decoded)
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
}
