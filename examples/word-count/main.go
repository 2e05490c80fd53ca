// Counts the words of a text: the body is the text, the reply the words that are in it most often, in JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"unicode"
)

// Words in a reply.
const wordsMax = 10

type word struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

type report struct {
	Words    int    `json:"words"`
	Distinct int    `json:"distinct"`
	Most     []word `json:"most"`
}

// Words are letters and digits, in lower case; of those that are there as often the first in the alphabet comes first.
func count(text io.Reader) (report, error) {
	counts := map[string]int{}
	all := 0
	lines := bufio.NewReader(text)
	for {
		line, err := lines.ReadString('\n')
		for _, found := range strings.FieldsFunc(strings.ToLower(line), isNone) {
			counts[found]++
			all++
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return report{}, err
		}
	}
	most := make([]word, 0, len(counts))
	for found, times := range counts {
		most = append(most, word{found, times})
	}
	sort.Slice(most, func(a, b int) bool {
		if most[a].Count != most[b].Count {
			return most[a].Count > most[b].Count
		}
		return most[a].Word < most[b].Word
	})
	return report{all, len(most), most[:min(len(most), wordsMax)]}, nil
}

func isNone(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func main() {
	report, err := count(os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
