package llm

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/auth/bearer"
	"github.com/aws/smithy-go/logging"
)

// AWSConfig says whose account the Bedrock client works for. What is empty is
// found the way every AWS tool finds it: environment, profile, SSO, instance.
type AWSConfig struct {
	// Region is the AWS region.
	Region string
	// Profile is a profile of the AWS configuration files.
	Profile string
	// Credentials replace the chain.
	Credentials aws.CredentialsProvider
}

// NewBedrockClient returns a client of Amazon Bedrock's ConverseStream. A
// Credential in cfg is a Bedrock API key, sent as a bearer token; without one
// requests are signed with AWS credentials.
func NewBedrockClient(ctx context.Context, cfg ClientConfig) (*Client, error) {
	load := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithLogger(logging.Nop{}), // The default one writes to the terminal.
	}
	if cfg.AWS.Region != "" {
		load = append(load, awsconfig.WithRegion(cfg.AWS.Region))
	}
	if cfg.AWS.Profile != "" {
		load = append(load, awsconfig.WithSharedConfigProfile(cfg.AWS.Profile))
	}
	if cfg.AWS.Credentials != nil {
		load = append(load, awsconfig.WithCredentialsProvider(cfg.AWS.Credentials))
	}
	awsCfg, err := awsconfig.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if awsCfg.Region == "" {
		return nil, errors.New("no AWS region is set: set AWS_REGION, or region for the provider in the configuration")
	}
	client := bedrockruntime.NewFromConfig(awsCfg, func(o *bedrockruntime.Options) {
		// The one retry policy is the loop's.
		o.Retryer = aws.NopRetryer{}
		o.HTTPClient = streamingClient(cfg, bearerHeader)
		if cfg.BaseURL != "" {
			o.BaseEndpoint = aws.String(cfg.BaseURL)
		}
		if o.Credentials != nil {
			o.Credentials = markedCredentials{o.Credentials}
		}
		switch {
		case cfg.Credential != nil:
			// The SDK sends it over TLS only; the real one is put into each
			// request by the transport.
			o.BearerAuthTokenProvider = bearer.StaticTokenProvider{Token: bearer.Token{Value: "set-by-transport"}}
			o.AuthSchemePreference = []string{"httpBearerAuth"}
		case cfg.AWS.Credentials != nil || cfg.AWS.Profile != "":
			// AWS_BEARER_TOKEN_BEDROCK in the environment would win over
			// what was configured.
			o.BearerAuthTokenProvider = nil
			o.AuthSchemePreference = []string{"sigv4"}
		}
	})
	return newClient(&bedrockAdapter{cfg: cfg, client: client}, cfg)
}

// markedCredentials marks the errors of AWS credentials, so that a missing
// sign-in is not taken for a network that will come back.
type markedCredentials struct{ next aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (m markedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := m.next.Retrieve(ctx)
	if err != nil {
		return c, &awsCredentialError{err}
	}
	return c, nil
}

// awsCredentialError says that there are no AWS credentials to sign with.
type awsCredentialError struct{ err error }

func (e *awsCredentialError) Error() string {
	return "there are no AWS credentials: " + e.err.Error()
}

func (e *awsCredentialError) Unwrap() error { return e.err }
