#include "server/http/http.h"

#include "server/config.h"
#include "server/limits.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What no priority list may bring back. */
#define NEVER ":-VERS-SSL3.0:-VERS-TLS1.0:-VERS-TLS1.1"

struct gm_tls {
    atomic_uint references;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    gnutls_datum_t ticket_key; /* of these credentials alone: a reload ends what can be resumed */
    bool verify_clients;
    int64_t expires;
};

static enum gm_status make_priority(const char *list, gnutls_priority_t *ret, struct gm_error *err)
{
    char text[GM_CONFIG_TEXT_MAX + sizeof NEVER];

    snprintf(text, sizeof text, "%s" NEVER, list);
    int fault = gnutls_priority_init(ret, text, NULL);
    return fault == 0 ? GM_OK
                      : gm_fail(err, GM_INTERNAL, "--tls-priority: %.200s: %s", list,
                                gnutls_strerror(fault));
}

static gnutls_datum_t datum(const struct gm_file *file)
{
    return (gnutls_datum_t){(unsigned char *)file->bytes, (unsigned)file->len};
}

/* The earliest end of the certificates in the file, which is known to be right. */
static int64_t first_end(const struct gm_file *file)
{
    gnutls_x509_crt_t *list = NULL;
    gnutls_datum_t pem = datum(file);
    unsigned count = 0;
    int64_t first = INT64_MAX;

    if (gnutls_x509_crt_list_import2(&list, &count, &pem, GNUTLS_X509_FMT_PEM, 0) < 0)
        return first;
    for (unsigned i = 0; i < count; i++) {
        int64_t end = gnutls_x509_crt_get_expiration_time(list[i]);
        first = end < first ? end : first;
        gnutls_x509_crt_deinit(list[i]);
    }
    gnutls_free(list);
    return first;
}

static enum gm_status load_pair(struct gm_tls *tls, const struct gm_config *config,
                                struct gm_error *err)
{
    struct gm_file cert = {.bytes = NULL}, key = {.bytes = NULL};
    enum gm_status status = gm_file_read(config->tls_cert, GM_TLS_FILE_BYTES_MAX, &cert, err);

    if (status == GM_OK)
        status = gm_file_read(config->tls_key, GM_TLS_FILE_BYTES_MAX, &key, err);
    if (status == GM_OK) {
        gnutls_datum_t cert_pem = datum(&cert), key_pem = datum(&key);
        int fault = gnutls_certificate_set_x509_key_mem(tls->credentials, &cert_pem, &key_pem,
                                                        GNUTLS_X509_FMT_PEM);
        tls->expires = first_end(&cert);
        if (fault < 0)
            status = gm_fail(err, GM_INTERNAL, "%s and %s are no certificate and its key: %s",
                             config->tls_cert, config->tls_key, gnutls_strerror(fault));
    }
    gm_file_free(&cert);
    gm_file_free(&key);
    return status;
}

static enum gm_status load_client_ca(struct gm_tls *tls, const char *path, struct gm_error *err)
{
    struct gm_file file;
    enum gm_status status = gm_file_read(path, GM_TLS_FILE_BYTES_MAX, &file, err);

    if (status != GM_OK)
        return status;
    gnutls_datum_t pem = datum(&file);
    int count = gnutls_certificate_set_x509_trust_mem(tls->credentials, &pem, GNUTLS_X509_FMT_PEM);
    gm_file_free(&file);
    tls->verify_clients = true;
    return count > 0 ? GM_OK
                     : gm_fail(err, GM_INTERNAL, "%s has no certificates of authorities: %s", path,
                               gnutls_strerror(count));
}

enum gm_status gm_tls_load(const struct gm_config *config, struct gm_tls **ret,
                           struct gm_error *err)
{
    struct gm_tls *tls = calloc(1, sizeof *tls);
    enum gm_status status = GM_OK;

    if (tls)
        atomic_init(&tls->references, 1);
    if (!tls || gnutls_certificate_allocate_credentials(&tls->credentials) != 0)
        status = gm_fail(err, GM_INTERNAL, "no memory for TLS");
    else if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        status = gm_fail(err, GM_INTERNAL,
                         "--tls-cert: gemmd has no TLS, as its libmicrohttpd was built without it");
    else
        status = make_priority(config->tls_priority, &tls->priority, err);
    if (status == GM_OK)
        status = load_pair(tls, config, err);
    if (status == GM_OK && *config->tls_client_ca)
        status = load_client_ca(tls, config->tls_client_ca, err);
    if (status == GM_OK && !tls->verify_clients &&
        gnutls_session_ticket_key_generate(&tls->ticket_key) != 0)
        status = gm_fail(err, GM_INTERNAL, "no key for TLS's session tickets");
    if (status == GM_OK)
        *ret = tls;
    else
        gm_tls_unref(tls);
    return status;
}

struct gm_tls *gm_tls_ref(struct gm_tls *tls)
{
    if (tls)
        atomic_fetch_add(&tls->references, 1);
    return tls;
}

void gm_tls_unref(struct gm_tls *tls)
{
    if (!tls || atomic_fetch_sub(&tls->references, 1) > 1)
        return;
    if (tls->ticket_key.data) {
        gnutls_memset(tls->ticket_key.data, 0, tls->ticket_key.size);
        gnutls_free(tls->ticket_key.data);
    }
    if (tls->priority)
        gnutls_priority_deinit(tls->priority);
    if (tls->credentials)
        gnutls_certificate_free_credentials(tls->credentials);
    free(tls);
}

int64_t gm_tls_expires(const struct gm_tls *tls)
{
    return tls->expires;
}

/* Called within the handshake. The alert tells the client what it lacks. */
static int verify_client(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned flaws = 0;
    int fault = gnutls_certificate_verify_peers(session, &purpose, 1, &flaws);

    if (fault == GNUTLS_E_SUCCESS && flaws == 0)
        return 0;
    bool none = fault == GNUTLS_E_NO_CERTIFICATE_FOUND;
    bool new_alert = none && gnutls_protocol_get_version(session) >= GNUTLS_TLS1_3;
    gnutls_alert_send(session, GNUTLS_AL_FATAL,
                      new_alert                              ? GNUTLS_A_CERTIFICATE_REQUIRED
                      : none                                 ? GNUTLS_A_HANDSHAKE_FAILURE
                      : flaws & GNUTLS_CERT_EXPIRED          ? GNUTLS_A_CERTIFICATE_EXPIRED
                      : flaws & GNUTLS_CERT_SIGNER_NOT_FOUND ? GNUTLS_A_UNKNOWN_CA
                                                             : GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

bool gm_tls_attach(struct gm_tls *tls, void *session)
{
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials) != 0 ||
        gnutls_priority_set(session, tls->priority) != 0)
        return false;
    /* Who comes back resumes its session, without a signature. But a client's certificate is looked
     * at each time. */
    if (!tls->verify_clients) {
        if (gnutls_session_ticket_enable_server(session, &tls->ticket_key) != 0)
            return false;
        gnutls_db_set_cache_expiration(session, GM_TLS_RESUME_S);
    }
    if (tls->verify_clients) {
        /* Asked for, not required: so that verify_client can say what is wrong. */
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(session, verify_client);
    }
    return true;
}

static int no_certificate(gnutls_session_t session, const gnutls_datum_t *issuers, int issuer_count,
                          const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                          gnutls_pcert_st **ret, unsigned *ret_count, gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)issuers;
    (void)issuer_count;
    (void)algorithms;
    (void)algorithm_count;
    (void)ret;
    (void)ret_count;
    (void)ret_key;
    return -1;
}

void *gm_tls_no_certificate(void)
{
    return (void *)no_certificate;
}

bool gm_tls_send_last(void *session, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t n = gnutls_record_send(session, at, len);
        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return gnutls_bye(session, GNUTLS_SHUT_WR) == GNUTLS_E_SUCCESS;
}

/* ---- The client. ---- */

/* Makes GnuTLS's error errno. */
static ssize_t failed(struct gm_tls_client *client, ssize_t error)
{
    if (error == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        gnutls_alert_description_t alert = gnutls_alert_get(client->session);
        client->refused = alert == GNUTLS_A_CERTIFICATE_REQUIRED ||
                          alert == GNUTLS_A_HANDSHAKE_FAILURE || alert == GNUTLS_A_BAD_CERTIFICATE;
    }
    errno = error == GNUTLS_E_AGAIN || error == GNUTLS_E_INTERRUPTED ? EAGAIN
            : error == GNUTLS_E_MEMORY_ERROR                         ? ENOMEM
                                                                     : EPROTO;
    return -1;
}

bool gm_tls_client_open(struct gm_tls_client *client, int socket,
                        bool (*wait)(int socket, short event, int64_t until_ns), int64_t until_ns)
{
    gnutls_session_t session = NULL;
    gnutls_certificate_credentials_t credentials = NULL;
    int fault = gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);

    *client = (struct gm_tls_client){.session = NULL};
    if (fault == 0)
        fault = gnutls_certificate_allocate_credentials(&credentials);
    if (fault == 0)
        fault = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    if (fault == 0)
        fault = gnutls_set_default_priority(session);
    client->session = session;
    client->credentials = credentials;
    if (fault == 0) {
        gnutls_transport_set_int(session, socket);
        while ((fault = gnutls_handshake(session)) < 0 && !gnutls_error_is_fatal(fault))
            if (fault == GNUTLS_E_AGAIN &&
                !wait(socket, gnutls_record_get_direction(session) ? POLLOUT : POLLIN, until_ns))
                return false; /* with errno */
    }
    return fault == 0 || (failed(client, fault), false);
}

ssize_t gm_tls_client_send(struct gm_tls_client *client, const void *bytes, size_t len)
{
    ssize_t n = gnutls_record_send(client->session, bytes, len);

    return n >= 0 ? n : failed(client, n);
}

ssize_t gm_tls_client_receive(struct gm_tls_client *client, void *bytes, size_t len)
{
    ssize_t n = gnutls_record_recv(client->session, bytes, len);

    return n >= 0 ? n : failed(client, n);
}

void gm_tls_client_close(struct gm_tls_client *client)
{
    if (client->session)
        gnutls_deinit(client->session);
    if (client->credentials)
        gnutls_certificate_free_credentials(client->credentials);
    *client = (struct gm_tls_client){.session = NULL};
}
