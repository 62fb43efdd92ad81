package token

import "testing"

func TestEstimateIsWithinATenthAfterOneCalibration(t *testing.T) {
	count := o200k(t)
	for _, kind := range kindsOfText {
		t.Run(kind.name, func(t *testing.T) {
			first, second := kind.text(t, 0), kind.text(t, 1)
			var c Calibration
			c.Observe(Estimate(first), count(first))
			got, want := c.Scale(Estimate(second)), count(second)
			off := float64(got)/float64(want) - 1
			raw := float64(Estimate(second))/float64(want) - 1
			t.Logf("%d tokens, calibrated %+.1f %%, uncalibrated %+.1f %%", want, off*100, raw*100)
			if off < -0.10 || off > 0.10 {
				t.Errorf("calibrated estimate is off by %+.1f %%", off*100)
			}
			if raw < -0.20 || raw > 0.20 {
				t.Errorf("uncalibrated estimate is off by %+.1f %%", raw*100)
			}
		})
	}
}

func TestEstimateHoldsWhenTheKindOfTextChanges(t *testing.T) {
	count := o200k(t)
	for _, before := range kindsOfText {
		var c Calibration
		text := before.text(t, 0)
		c.Observe(Estimate(text), count(text))
		for _, after := range kindsOfText {
			text := after.text(t, 1)
			got, want := c.Scale(Estimate(text)), count(text)
			if off := float64(got)/float64(want) - 1; off < -0.25 || off > 0.3 {
				t.Errorf("calibrated on %s, %s is off by %+.1f %%", before.name, after.name, off*100)
			}
		}
	}
}

func TestCalibrationScalesAndUnscales(t *testing.T) {
	var c Calibration
	if c.Scale(100) != 100 || c.Unscale(100) != 100 {
		t.Error("the zero value corrects something")
	}
	for _, ratio := range [][2]int{{1000, 1500}, {1000, 700}, {999, 1001}, {1000, 10}, {1000, 90000}} {
		c.Observe(ratio[0], ratio[1])
		for n := range 3000 {
			if got := c.Scale(c.Unscale(n)); got > n {
				t.Fatalf("ratio %v: Scale(Unscale(%d)) = %d", ratio, n, got)
			}
		}
		if got := c.Scale(1000); got < 500 || got > 2500 {
			t.Errorf("ratio %v is not clamped: 1000 becomes %d", ratio, got)
		}
	}
	before := c
	c.Observe(0, 10)
	c.Observe(10, 0)
	if c != before {
		t.Error("nonsense was taken in")
	}
}
