// A command in stock Go that uses its runtime: goroutines, channels, maps, sorting, JSON, compression, a panic that is recovered.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
)

type count struct {
	Word  string `json:"word"`
	Times int    `json:"times"`
}

// Counts words, a goroutine for each line.
func words(text string) []count {
	var wait sync.WaitGroup
	found := make(chan string)
	for _, line := range strings.Split(text, "\n") {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for _, word := range strings.Fields(line) {
				found <- strings.ToLower(word)
			}
		}()
	}
	go func() { wait.Wait(); close(found) }()
	times := map[string]int{}
	for word := range found {
		times[word]++
	}
	var counts []count
	for word, n := range times {
		counts = append(counts, count{word, n})
	}
	sort.Slice(counts, func(i, j int) bool {
		return counts[i].Times > counts[j].Times || counts[i].Times == counts[j].Times && counts[i].Word < counts[j].Word
	})
	return counts
}

func recovered() (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	var nothing []int
	return fmt.Sprint(nothing[len(os.Args)+7])
}

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	text, _ := json.Marshal(words(string(body)))
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	writer.Write(text)
	writer.Close()
	reader, err := gzip.NewReader(&packed)
	if err != nil {
		panic(err)
	}
	unpacked, _ := io.ReadAll(reader)
	fmt.Printf("%s\n%v\n%s\n", unpacked, bytes.Equal(text, unpacked), recovered())
}
