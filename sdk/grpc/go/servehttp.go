//go:build servehttp

package grpc

import "net/http"

// ServeHTTP is not there: requests come from the host. It is for programs that name it, built with the tag servehttp: with its types each function would
// be a quarter larger.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "grpc: ServeHTTP does not exist in a function: call Serve", http.StatusNotImplemented)
}
