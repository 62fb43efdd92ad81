package compaction

import (
	"slices"
	"sort"
)

// floors says how small a text may get, in tokens, by what it is: soft floors
// hold while the newest step is still whole, hard floors always.
var floors = [...]struct{ soft, hard int }{
	pieceOutput:    {256, 24},
	pieceInput:     {128, 24},
	pieceAssistant: {384, 48},
	pieceUser:      {1024, 160},
	pieceSummary:   {2048, 320},
}

// The floors of the newest step, in tokens, whatever the text is.
const (
	softFloorNewest = 2048
	hardFloorNewest = 256
)

// lastStage is the stage in which every text is at its hard floor.
const lastStage = 4

// size is how large the text of a piece is in a stage. From stage to stage less
// is left: first of what is old, then of the newest step, then of both again.
func (p *piece) size(stage int) int {
	size := p.tokens
	switch {
	case p.protected:
	case p.newest && stage >= 4:
		size = hardFloorNewest
	case p.newest && stage >= 2:
		size = softFloorNewest
	case !p.newest && stage >= 3:
		size = floors[p.kind].hard
	case !p.newest && stage >= 1:
		size = floors[p.kind].soft
	}
	return min(p.tokens, size)
}

func stageSize(pieces []piece, stage int) int {
	total := 0
	for i := range pieces {
		total += pieces[i].fixed + pieces[i].size(stage)
	}
	return total
}

// fitPieces returns how many tokens the text of each piece may have so that
// all of them together have at most room. It is not ok when there is too
// little room for the hard floors.
func fitPieces(pieces []piece, room int) (allowances []int, ok bool) {
	stage := 0
	for stageSize(pieces, stage) > room {
		if stage == lastStage {
			return nil, false
		}
		stage++
	}
	if stage == 0 {
		return allowancesAt(pieces, 0, 0), true
	}
	// Between the stage that fits and the one before it all texts are cut
	// to one level, so that the largest give way first.
	highest := 0
	for i := range pieces {
		highest = max(highest, pieces[i].tokens)
	}
	over := sort.Search(highest+1, func(level int) bool {
		total := 0
		for i, a := range allowancesAt(pieces, stage, level) {
			total += pieces[i].fixed + a
		}
		return total > room
	})
	return allowancesAt(pieces, stage, max(0, over-1)), true
}

// ageWeight is how much more the newest text may keep than the oldest.
const ageWeight = 4

// allowancesAt returns the allowances of a stage at a level: what the stage
// leaves at least, what the one before left at most, and between these the
// level, several times as much for new pieces as for old ones.
func allowancesAt(pieces []piece, stage, level int) []int {
	allowances := make([]int, len(pieces))
	for i := range pieces {
		least, most := pieces[i].size(stage), pieces[i].size(max(0, stage-1))
		weighted := level + level*(ageWeight-1)*i/len(pieces)
		allowances[i] = min(max(weighted, least), most)
	}
	return allowances
}

// splitPieces returns the ends of the successive parts that the pieces have to be
// split into so that each has room at the hard floors: as few parts as there
// can be, of about equal size.
func splitPieces(pieces []piece, room int) []int {
	ends := splitAt(pieces, room)
	smallest := sort.Search(room, func(r int) bool { return len(splitAt(pieces, r)) <= len(ends) })
	return splitAt(pieces, smallest)
}

// splitAt fills parts of at most room tokens from the back, so that the last
// one is full: it has the newest step. A piece larger than room is a part of
// its own.
func splitAt(pieces []piece, room int) []int {
	ends := []int{len(pieces)}
	used := 0
	for i := len(pieces) - 1; i >= 0; i-- {
		size := pieces[i].fixed + pieces[i].size(lastStage)
		if used > 0 && used+size > room {
			ends = append(ends, i+1)
			used = 0
		}
		used += size
	}
	slices.Reverse(ends)
	return ends
}
