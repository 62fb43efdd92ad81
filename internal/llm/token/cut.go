package token

import "unicode/utf8"

// HeadTail returns the beginning and the end of s, which has the given number
// of tokens: together at most about maxTokens, two thirds of it the beginning.
func HeadTail(s string, maxTokens, tokens int) (head, tail string) {
	if maxTokens <= 0 || tokens <= 0 {
		return "", ""
	}
	// Tokens are not spread evenly over the bytes, so the cut is corrected
	// until it fits.
	keep := len(s) * maxTokens / tokens
	for {
		head, tail = s[:runeFloor(s, keep*2/3)], s[runeCeil(s, len(s)-keep/3):]
		got := Estimate(head) + Estimate(tail)
		if got <= maxTokens || keep < 16 {
			return head, tail
		}
		keep = min(keep*9/10, keep*maxTokens/got)
	}
}

func runeFloor(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

func runeCeil(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
