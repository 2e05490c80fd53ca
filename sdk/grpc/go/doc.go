// Package grpc stands in the place of google.golang.org/grpc in programs that become functions of an application in Sledge. Their sources stay as they
// are. Calls between functions of one application stay in the process; the server ends HTTP/2 and TLS. So there is no transport here: options about
// one are accepted and do nothing.
//
// A program is built as a reactor (GOOS=wasip1 GOARCH=wasm -buildmode=c-shared). Its main runs once, when the function is loaded, up to where its
// server serves. Each request is answered in a copy of what the program was then.
//
//	main.main --Serve--> methods by path
//	request --sledge:rpc, stdin--> exchange --> Server --> handler --> reply
//	ClientConn --sledge:rpc--> wire --> another function
//
// Outside of WebAssembly both ends are in this process (host_native.go): a call is answered by the server that serves its service.
package grpc

// Version is the version whose symbols this module has.
const Version = "1.85.0"

// Generated code names the one that it needs.
const (
	SupportPackageIsVersion3 = true
	SupportPackageIsVersion4 = true
	SupportPackageIsVersion5 = true
	SupportPackageIsVersion6 = true
	SupportPackageIsVersion7 = true
	SupportPackageIsVersion8 = true
	SupportPackageIsVersion9 = true
)
