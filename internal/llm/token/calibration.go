package token

// Calibration corrects local estimates by what a provider counted for the last
// request. The last ratio is used as it is: a mean would lag behind when the
// kind of text changes, which is when it matters. The zero value corrects
// nothing.
type Calibration struct {
	estimated, reported int
}

// The bounds of the ratio reported/estimated, as fractions of 100. Vocabularies
// differ by less than a factor of two; what is beyond comes from a report that
// does not mean the whole request.
const (
	minRatio = 50
	maxRatio = 250
)

// Observe takes in that a request of estimated tokens was counted as reported
// tokens. It ignores what cannot be.
func (c *Calibration) Observe(estimated, reported int) {
	if estimated <= 0 || reported <= 0 {
		return
	}
	c.estimated = estimated
	c.reported = min(max(reported, ceilDiv(estimated*minRatio, 100)), estimated*maxRatio/100)
}

// Scale returns an estimate corrected, rounded up.
func (c *Calibration) Scale(estimated int) int {
	if c.estimated == 0 {
		return estimated
	}
	return ceilDiv(estimated*c.reported, c.estimated)
}

// Unscale returns the largest estimate that Scale makes at most tokens.
func (c *Calibration) Unscale(tokens int) int {
	if c.estimated == 0 {
		return tokens
	}
	return tokens * c.estimated / c.reported
}

func ceilDiv(a, b int) int {
	if a <= 0 {
		return a / b
	}
	return (a + b - 1) / b
}
