// Starts a server for the conformance suite, which asks for it on standard input and gets its address on standard output:
//
//	launcher SLEDGE FOLDER
//
// FOLDER has the application's configuration, sledge.json, and what was built of it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"connectrpc.com/conformance/internal"
	conformancev1 "connectrpc.com/conformance/internal/gen/proto/go/connectrpc/conformance/v1"
)

// The limit where the suite names none: that of gRPC's libraries.
const limitDefault = 4 << 20

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(sledge, folder string) error {
	codec := internal.NewCodec(false)
	request := &conformancev1.ServerCompatRequest{}
	if err := codec.NewDecoder(os.Stdin).DecodeNext(request); err != nil {
		return err
	}
	own, err := os.MkdirTemp(folder, "server-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	file := filepath.Join(folder, filepath.Base(own)+".json")
	defer os.Remove(file)
	if err := configure(folder, own, file, request); err != nil {
		return err
	}
	server := exec.Command(sledge, "serve", "--config", file)
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	output, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := server.Start(); err != nil {
		return err
	}
	go func() {
		<-signals
		server.Process.Signal(syscall.SIGTERM)
	}()
	port, err := listening(bufio.NewScanner(output))
	if err != nil {
		return err
	}
	response := &conformancev1.ServerCompatResponse{Host: "127.0.0.1", Port: port, PemCert: request.GetServerCreds().GetCert()}
	if err := codec.NewEncoder(os.Stdout).Encode(response); err != nil {
		return err
	}
	return server.Wait()
}

// configure writes a configuration for what is asked for.
func configure(folder, own, file string, request *conformancev1.ServerCompatRequest) error {
	bytes, err := os.ReadFile(filepath.Join(folder, "sledge.json"))
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(bytes, &config); err != nil {
		return err
	}
	limit := int(request.GetMessageReceiveLimit())
	if limit == 0 {
		limit = limitDefault
	}
	application := config["applications"].([]any)[0].(map[string]any)
	application["message_bytes_max"] = limit
	application["functions"].([]any)[0].(map[string]any)["env"] = map[string]any{"LIMIT": strconv.Itoa(limit)}
	if request.GetUseTls() {
		certificate, key := filepath.Join(own, "certificate.pem"), filepath.Join(own, "key.pem")
		if err := os.WriteFile(certificate, request.GetServerCreds().GetCert(), 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(key, request.GetServerCreds().GetKey(), 0o600); err != nil {
			return err
		}
		config["tls_certificate_file"], config["tls_key"] = certificate, map[string]any{"file": key}
	}
	bytes, err = json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes, 0o600)
}

// listening waits for the line that says where the server listens.
func listening(lines *bufio.Scanner) (uint32, error) {
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok {
			_, port, err := net.SplitHostPort(address[strings.Index(address, "//")+2:])
			if err != nil {
				return 0, err
			}
			number, err := strconv.ParseUint(port, 10, 16)
			return uint32(number), err
		}
	}
	return 0, fmt.Errorf("the server does not start: %w", lines.Err())
}
