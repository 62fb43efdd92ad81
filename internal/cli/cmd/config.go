package cmd

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"keen/internal/config"
)

func (a *App) configCommand() *cobra.Command {
	var f modelFlags
	c := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value, and where it came from",
		Long: `Config shows what counts when Keen runs with the same flags and environment: each
setting with its value and its source. Secrets are masked. The file is
` + config.DefaultPath() + `.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, loaded, err := a.resolve(c.Context(), f.Flags)
			if err != nil && r.Provider.V == "" {
				return usageError(err)
			}
			r.Notes = append(r.Notes, loaded.Warnings...)
			return errors.Join(a.printConfig(r), asUsage(err))
		},
	}
	f.register(c.Flags())
	return c
}

// asUsage marks an error as one of usage.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError(err)
}

func (a *App) printConfig(r config.Resolved) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, row := range r.Rows() {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", row.Name, row.Value, row.Source)
	}
	if err := w.Flush(); err != nil {
		return failed(fmt.Errorf("print the settings: %w", err))
	}
	for _, note := range r.Notes {
		_, _ = fmt.Fprintf(a.Stdout, "\nnote: %s\n", note)
	}
	return nil
}
