package widgets

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// spinnerInterval is how long a frame is shown.
const spinnerInterval = 80 * time.Millisecond

// SpinnerTickMsg moves a running spinner on.
type SpinnerTickMsg struct {
	// Time is when the tick came.
	Time time.Time

	spinner    *Spinner
	generation int
}

// Spinner shows that something goes on and for how long. Its frame follows from
// the time alone, so that missed ticks do not slow it down.
type Spinner struct {
	frames     []string
	generation int
	running    bool
	start, now time.Time
}

// NewSpinner returns a stopped spinner with the given pictures, of which there
// is at least one.
func NewSpinner(frames []string) *Spinner { return &Spinner{frames: frames} }

// Start starts the spinner at a moment, anew if it runs already, and returns
// the command that ticks.
func (s *Spinner) Start(now time.Time) tea.Cmd {
	s.generation++
	s.running, s.start, s.now = true, now, now
	return s.tick()
}

// Stop stops the spinner. Ticks that are on their way do nothing.
func (s *Spinner) Stop() {
	s.generation++
	s.running = false
}

// Update takes in a tick and returns the command for the next one, nil when
// the message is not for this run of this spinner.
func (s *Spinner) Update(msg tea.Msg) tea.Cmd {
	tick, ok := msg.(SpinnerTickMsg)
	if !ok || !s.running || tick.spinner != s || tick.generation != s.generation {
		return nil
	}
	s.now = tick.Time
	return s.tick()
}

// Running reports whether the spinner was started and not stopped.
func (s *Spinner) Running() bool { return s.running }

// Elapsed returns the time from the start to the last tick.
func (s *Spinner) Elapsed() time.Duration { return max(s.now.Sub(s.start), 0) }

// Frame returns the picture of the moment; it is empty when the spinner does
// not run.
func (s *Spinner) Frame() string {
	if !s.running || len(s.frames) == 0 {
		return ""
	}
	return s.frames[int(s.Elapsed()/spinnerInterval)%len(s.frames)]
}

func (s *Spinner) tick() tea.Cmd {
	generation := s.generation
	return tea.Tick(spinnerInterval, func(now time.Time) tea.Msg {
		return SpinnerTickMsg{Time: now, spinner: s, generation: generation}
	})
}
