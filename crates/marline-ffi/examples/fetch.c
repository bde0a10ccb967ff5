// Fetches a URL, and says what its connection did:
//
//     fetch URL [CERTIFICATE.pem]
//     fetch --echo URL CERTIFICATE.pem    sends a stream and a datagram to a server that returns both

#include <stdio.h>
#include <string.h>

#include "marline.h"

static int failed(const char *what) {
    fprintf(stderr, "fetch: %s: %s\n", what, marline_last_error());
    return 1;
}

static int report(const marline_connection *connection) {
    marline_statistics all;
    marline_path_statistics paths[4];
    if (marline_connection_statistics(connection, &all) != 0)
        return failed("statistics");
    ptrdiff_t count = marline_connection_paths(connection, paths, 4);
    if (count < 0)
        return failed("paths");
    fprintf(stderr, "%llu bytes received, round trip %.1f ms\n", (unsigned long long)all.bytes_received,
            all.smoothed_rtt_ns / 1e6);
    for (ptrdiff_t index = 0; index < count && index < 4; index++)
        fprintf(stderr, "path %llu to %s: %llu packets lost\n", (unsigned long long)paths[index].id,
                paths[index].remote, (unsigned long long)paths[index].packets_lost);
    return 0;
}

static int fetch(marline_client *client, const char *url) {
    marline_header fields[] = {{"accept", "*/*"}, {"user-agent", "fetch/1"}};
    marline_response *response = marline_request(client, "GET", url, fields, 2, NULL, 0);
    if (response == NULL)
        return failed(url);
    const char *type = marline_response_header(response, "Content-Type");
    fprintf(stderr, "%s %d %s\n", marline_response_version(response), marline_response_status(response),
            type != NULL ? type : "");
    uint8_t buffer[16384];
    ptrdiff_t length;
    while ((length = marline_response_read(response, buffer, sizeof buffer)) > 0)
        fwrite(buffer, 1, (size_t)length, stdout);
    int status = length < 0 ? failed("the response is not complete") : 0;
    marline_connection *connection = marline_response_connection(response);
    if (connection != NULL) {
        if (report(connection) != 0)
            status = 1;
        marline_connection_free(connection);
    }
    marline_response_free(response);
    return status;
}

static int echo(marline_client *client, const char *url) {
    marline_connection *connection = marline_connect(client, url, "echo");
    if (connection == NULL)
        return failed(url);
    int status = 1;
    uint8_t buffer[64];
    ptrdiff_t length;
    marline_stream *stream = marline_stream_open(connection, true);
    if (stream == NULL)
        failed("open");
    else if (marline_stream_write(stream, (const uint8_t *)"stream ", 7) != 0 || marline_stream_finish(stream) != 0)
        failed("write");
    else {
        while ((length = marline_stream_read(stream, buffer, sizeof buffer)) > 0)
            fwrite(buffer, 1, (size_t)length, stdout);
        if (length < 0 || marline_datagram_send(connection, (const uint8_t *)"datagram\n", 9) != 0)
            failed("send");
        else if ((length = marline_datagram_receive(connection, buffer, sizeof buffer, 10000)) < 0)
            failed("receive");
        else {
            fwrite(buffer, 1, (size_t)length, stdout);
            status = report(connection);
        }
    }
    marline_stream_free(stream);
    marline_connection_close(connection, 0);
    marline_connection_free(connection);
    return status;
}

int main(int argc, char **argv) {
    int echoes = argc > 1 && strcmp(argv[1], "--echo") == 0;
    if (argc < 2 + echoes) {
        fprintf(stderr, "usage: fetch [--echo] URL [CERTIFICATE.pem]\n");
        return 2;
    }
    const char *url = argv[1 + echoes];
    marline_options *options = marline_options_new();
    if (argc > 2 + echoes && marline_options_set(options, "trust", argv[2 + echoes]) != 0)
        return failed("trust");
    marline_client *client = marline_client_new(options);
    marline_options_free(options);
    if (client == NULL)
        return failed("client");
    int status = echoes ? echo(client, url) : fetch(client, url);
    marline_client_free(client);
    return status;
}
