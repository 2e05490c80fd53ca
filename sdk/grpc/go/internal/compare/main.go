// Command compare compares the exported symbols of this module with those of released versions of the real one, which it downloads:
//
//	go run ./internal/compare v1.60.1 v1.85.0 > API.md
//
// It says of each version what is missing or has another type here. It reads declarations, and compiles nothing.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages are those that programs use.
var packages = []string{
	".", "codes", "status", "metadata", "peer", "credentials", "credentials/insecure", "credentials/local", "encoding", "encoding/gzip", "encoding/proto",
	"mem", "keepalive", "stats", "tap", "connectivity", "backoff", "grpclog", "health", "health/grpc_health_v1", "reflection",
	"reflection/grpc_reflection_v1", "reflection/grpc_reflection_v1alpha", "resolver", "resolver/manual", "balancer/roundrobin", "attributes", "serviceconfig",
	"test/bufconn",
}

func main() {
	ours, err := readAll(".")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("# Exported symbols beside google.golang.org/grpc")
	fmt.Println("\nWritten by `go run ./internal/compare VERSION...`. What is not in this list, in these packages, is here and has the same type.")
	for _, version := range os.Args[1:] {
		folder, err := download(version)
		if err != nil {
			log.Fatal(version, ": ", err)
		}
		theirs, err := readAll(folder)
		if err != nil {
			log.Fatal(version, ": ", err)
		}
		report(version, ours, theirs)
	}
}

func download(version string) (folder string, err error) {
	text, err := exec.Command("go", "mod", "download", "-json", "google.golang.org/grpc@"+version).Output()
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	err = json.Unmarshal(text, &module)
	return module.Dir, err
}

// readAll reads all packages that there are.
func readAll(root string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, name := range packages {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			continue
		}
		symbols, err := read(root, name)
		if err != nil {
			return nil, err
		}
		all[name] = symbols
	}
	return all, nil
}

func report(version string, ours, theirs map[string]map[string]string) {
	count, lines := 0, []string{}
	for _, name := range packages {
		var missing, different []string
		for symbol, is := range theirs[name] {
			count++
			here, ok := ours[name][symbol]
			switch {
			case !ok:
				missing = append(missing, "`"+symbol+"`")
			case here != is:
				different = append(different, fmt.Sprintf("`%s`: `%s`, there `%s`", symbol, here, is))
			}
		}
		slices.Sort(missing)
		slices.Sort(different)
		title := strings.TrimPrefix("grpc/"+name, "grpc/./")
		if name == "." {
			title = "grpc"
		}
		if len(theirs[name]) > 0 && len(ours[name]) == 0 {
			missing = []string{"all of it"}
		}
		if len(missing) > 0 {
			lines = append(lines, fmt.Sprintf("- %s: missing: %s", title, strings.Join(missing, ", ")))
		}
		for _, one := range different {
			lines = append(lines, fmt.Sprintf("- %s: %s", title, one))
		}
	}
	fmt.Printf("\n## %s\n\n%d symbols.\n\n", version, count)
	for _, line := range lines {
		fmt.Println(line)
	}
}
