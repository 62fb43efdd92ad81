package config

import (
	"fmt"
	"strings"
)

// suggestion is the end of an error message about a word that is none of the
// known ones: the nearest of them, or all when none is near.
func suggestion(word string, known []string) string {
	if best, ok := nearest(word, known); ok {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return "; there are " + strings.Join(known, ", ")
}

// nearest returns the known word that word is the beginning of, or else the one
// with the fewest changes from it, if they are few enough for a slip.
func nearest(word string, known []string) (string, bool) {
	best, fewest := "", max(2, len(word)/3)+1
	for _, k := range known {
		if len(word) > 2 && strings.HasPrefix(k, word) {
			return k, true
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
